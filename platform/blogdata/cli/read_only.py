"""Has Spark judge a person's statement before it is run: it may read the given views, and do nothing else.

The engine judges the plan, as Spark's own parser and analyser see it (`ReadOnlyQuery`). Text is never matched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFUSED = "[BLOGDATA_NOT_READ_ONLY] "
_UNKNOWN_SOURCE = "DATA_SOURCE_NOT_FOUND"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_SESSION = {
    # Otherwise the parser replaces ${env:NAME}, also within a literal.
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
}


def require_read_only(
    spark: SparkSession, query: str, views: Iterable[str], *, written: str = "", views_only: bool = False
) -> None:
    """Refuse a statement that does anything but read the given views; nothing of it is run.

    Args:
        written: The statement with names of tables, as a person wrote it; empty: as it is.

    Raises:
        ConfigurationError: It does something else, or the server has no engine and cannot judge it.
        PySparkException: It is no statement of Spark's SQL, or names a column that does not exist.
    """
    from pyspark.errors import PySparkException

    for key, value in _SESSION.items():
        spark.conf.set(key, value)
    judged = spark.read.format("read-only-query").option("query", query).option("views", json.dumps(sorted(views)))
    judged = judged.option("views_only", str(views_only).lower())
    try:
        # The engine judges while Spark looks for the schema.
        judged.load().schema  # noqa: B018
    except PySparkException as error:
        text = str(error)
        if error.getCondition() == _UNKNOWN_SOURCE or _UNKNOWN_SOURCE in text:
            raise ConfigurationError(
                what="this Spark server cannot judge whether a statement only reads, so none is run",
                where="the Spark server, without the engine's jar",
                next_step="load the engine's jar, or query the tables with another reader of Delta tables: write their "
                "views with blogdata job share",
            ) from error
        if _REFUSED in text:
            found = text.partition(_REFUSED)[2].partition("\n")[0].strip()
            if found.isidentifier():
                # The class of a plan's node, such as DropTable.
                found = f"a part that is none: {_CAPITAL.sub(' ', found).lower()}"
            raise ConfigurationError(
                what=f"only queries are run here, over the lake's tables; this has {found}",
                where=f"'{(written or query).strip()[:60]}'",
                next_step="read layer.table by SELECT, WITH, DESCRIBE or EXPLAIN, with functions that only compute; "
                "tables are written by materializing datasets: blogdata run",
            ) from error
        raise
