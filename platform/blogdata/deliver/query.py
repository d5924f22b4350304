"""A person's query of the lake: the tables and versions that it reads, judged by Spark before it is run, and its rows.

Spark's own parser and analyser judge the plan (`ReadOnlyQuery`): it may read the given views, and do nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.contract.privacy import CONSUMERS, consumer_view
from blogdata.contract.schema import WHOLE
from blogdata.errors import ConfigurationError, similar
from blogdata.errors.remedies import Remedy, Run, ShowRights
from blogdata.ledger import executions
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.operate import config, secrets
from blogdata.operate.config import Settings
from blogdata.patterns.data_value import metadata_decorator
from blogdata.patterns.data_value.metadata_decorator import PUBLICATIONS
from blogdata.patterns.error_management import checkpointer
from blogdata.patterns.error_management.checkpointer import OFFSETS_DDL, STREAM_OFFSETS
from blogdata.patterns.security import encryptor, fine_grained_accessor_for_tables, pseudo_anonymizer
from blogdata.patterns.security.fine_grained_accessor_for_tables import MASK, RIGHTS, Role, sight_of
from blogdata.patterns.storage import dataset_materializer, vertical_partitioner
from blogdata.patterns.storage.dataset_materializer import VIEW
from blogdata.table import companions, refused
from blogdata.table.lake import Lake
from blogdata.table.unneeded import READABLE
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SECRET = "masks"
"""Name of the secret from which the key of masks is derived."""
_PLATFORM = "ops."


@dataclass(frozen=True, kw_only=True)
class RoleSight:
    role: Role
    settings: Settings

    def require(self, names: Iterable[str]) -> None:
        for name in names:
            if self._of_platform(name):
                continue
            if name not in EVERY:
                raise ConfigurationError(
                    what=f"the role {self.role.value} does not see {name}",
                    where=name,
                    next_step=Remedy("read a dataset by its own name; see what the roles see: ", ShowRights()),
                )
            fine_grained_accessor_for_tables.require_sight(EVERY[name], self.role)

    def require_newest(self, names: Iterable[str]) -> None:
        """Refuse an earlier state of tables whose rows the role does not see alike: it shows what was hidden since."""
        sights = [sight_of(EVERY[name], self.role) for name in names if name in EVERY]
        changing = [sight.dataset for sight in sights if sight is not None and (sight.rows or sight.private)]
        if changing:
            raise ConfigurationError(
                what=f"the role {self.role.value} sees the newest state only: who may be shared may change",
                where=f"--as-of of {changing[0]}",
                next_step="leave --as-of out",
            )

    def of(self, spark: SparkSession, lake: Lake, name: str, rows: DataFrame) -> DataFrame:
        if self._of_platform(name):
            return rows
        offer_masks(spark, self.settings)
        return fine_grained_accessor_for_tables.restricted(rows, carried(EVERY[name], lake.table(name)), self.role)

    def _of_platform(self, name: str) -> bool:
        # What the platform says of itself has no value of a person.
        return name.startswith(_PLATFORM) and RIGHTS[self.role].technical


def offer_masks(spark: SparkSession, settings: Settings, purpose: str = SECRET) -> None:
    """Give a session the function that masks values; Spark's workers read the key, which no plan has."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType

    secret = secrets.own(settings, SECRET)
    masked = arrow_udf(  # type: ignore[call-overload]
        lambda texts: pseudo_anonymizer.tokens(texts, secret, purpose), StringType()
    )
    spark.udf.register(MASK, masked)


TABLE = re.compile(r"\b(bronze|silver|gold|ops|refused)\.([a-z0-9_]+)\b", re.IGNORECASE)
LITERALS = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/)""", re.DOTALL)
VERSIONS = "ops.versions"
"""Table that maps executions to table versions, for datasets executed by period."""
_REFUSED = "[BLOGDATA_NOT_READ_ONLY] "
_SESSION = {
    # Otherwise the parser replaces ${env:NAME}, also within a literal.
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
}


class NotPublished(ConfigurationError):
    """Raised when a query names a dataset that has no table yet."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query whose tables exist, at the versions of the stored ones; `written` is the statement as a person wrote it.

    `moment` is the time of the state to read (None: the newest), `sight` what the role sees that asks (None:
    everything); `keys` are settings whose keys decrypt what is encrypted (None: it is shown as it is stored).
    """

    lake: Lake
    query: str
    written: str
    names: Collection[str]
    versions: Mapping[str, int]
    moment: datetime | None
    sight: RoleSight | None = None
    keys: Settings | None = None

    @classmethod
    def of(
        cls,
        lake: Lake,
        query: str,
        moment: datetime | None,
        sight: RoleSight | None = None,
        *,
        keys: Settings | None = None,
    ) -> Query:
        """Find the tables of a query, before Spark is started."""
        # Names inside quotes and comments are text, not tables.
        parts = LITERALS.split(query)
        names = {match.group(0).lower() for part in parts[::2] for match in TABLE.finditer(part)}
        if sight is not None:
            sight.require(names)
            if moment is not None:
                sight.require_newest(names)
        # Choose all versions together, so that a dataset and its companion are read in the same state.
        stored = sorted({stored for name in names for stored in _read_by(name)})
        if moment is None:
            versions: Mapping[str, int] = lake.versions(stored)
        else:
            versions = {name: _readable_at(lake, name, moment) for name in stored if lake.caught_up(name) is not None}
        known = {*versions, *_derived(lake)}
        for name in sorted(names):
            dataset = _read_by(name)[0]
            if name not in known and dataset not in EVERY.keys() & versions.keys():
                if dataset in EVERY and moment is None:
                    raise NotPublished(what=f"there is no {dataset} yet", where=dataset, next_step="compute it")
                raise ConfigurationError(
                    what=f"there is no table {name}", where=lake.root, next_step=_existing(lake, name)
                )
        parts[::2] = [TABLE.sub(lambda match: view(match.group(0)), part) for part in parts[::2]]
        return cls(
            lake=lake,
            query="".join(parts),
            written=query,
            names=names,
            versions=versions,
            moment=moment,
            sight=sight,
            keys=keys,
        )

    def frame(self, spark: SparkSession) -> DataFrame:
        for name in sorted(self.names):
            rows = self.table(spark, name)
            if self.sight is not None:
                rows = self.sight.of(spark, self.lake, name, rows)
            rows.createOrReplaceTempView(view(name))
        require_read_only(
            spark, self.query, map(view, self.names), written=self.written, views_only=self.sight is not None
        )
        return spark.sql(self.query)

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        if name == VERSIONS:
            return _executions(spark, self.lake, self.moment)
        if name == PUBLICATIONS:
            version = _readable_at(self.lake, EVENTS, self.moment) if self.moment else None
            return metadata_decorator.context_table(spark, self.lake, version)
        if name == STREAM_OFFSETS:
            return spark.createDataFrame(checkpointer.stream_offset_rows(config.load().checkpoints), OFFSETS_DDL)
        if name.endswith(CONSUMERS) and name.removesuffix(CONSUMERS) in EVERY:
            dataset = name.removesuffix(CONSUMERS)
            return consumer_view(self.table(spark, dataset), carried(EVERY[dataset], self.lake.table(dataset)))
        if (materialized := _view_of(name)) is not None:
            inputs = {dataset: self.stored(spark, dataset) for dataset in _read_by(name)}
            return dataset_materializer.evaluate(spark, materialized.view, inputs)
        if len(parts := _read_by(name)) > 1:
            rows, lines = (self.stored(spark, part) for part in parts)
            return vertical_partitioner.whole(rows, lines, EVERY[parts[0]])
        return self.stored(spark, name)

    def stored(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the rows of a stored table, decrypted if there are keys."""
        rows, contract = self.lake.read(spark, name, self.versions[name]), EVERY.get(name)
        if self.keys is None or contract is None or contract.encrypted is None:
            return rows
        return encryptor.decrypted(rows, contract, secrets.own(self.keys, contract.encrypted.key))


def _read_by(name: str) -> Sequence[str]:
    """List the stored datasets that a table or view reads, the one that it is a view of first."""
    if (materialized := _view_of(name)) is not None:
        return tuple(read.dataset for read in materialized.reads)
    dataset = name.removesuffix(WHOLE)
    if dataset != name and dataset in EVERY and (wide := EVERY[dataset].wide) is not None:
        return dataset, wide.of
    return (name.removesuffix(CONSUMERS),)


def _view_of(name: str) -> Contract | None:
    """Find the dataset whose view a name stands for, whether it has been materialized or not."""
    contract = EVERY.get(name.removesuffix(VIEW))
    return contract if contract and contract.view and name.endswith(VIEW) else None


def _derived(lake: Lake) -> list[str]:
    return [*([] if lake.table(EVENTS) is None else [PUBLICATIONS]), VERSIONS, STREAM_OFFSETS]


def _existing(lake: Lake, wanted: str) -> str:
    kept = refused.kept(lake) if wanted.startswith(f"{refused.LAYER}.") else ()
    stored = sorted(name for name in (*EVERY, EVENTS) if lake.caught_up(name) is not None)
    tables = [*stored, *kept, *_derived(lake)]
    return f"{similar([wanted], tables)}tables: {', '.join(tables)}"


def view(name: str) -> str:
    return name.lower().replace(".", "__")


def _executions(spark: SparkSession, lake: Lake, moment: datetime | None) -> DataFrame:
    rows = []
    for dataset, contract in EVERY.items():
        if contract.executed is None or lake.caught_up(dataset) is None:
            continue
        newest = None if moment is None else version_at(lake, dataset, moment)
        marks = [mark for mark in EventLog(lake).history(dataset) if newest is None or mark.version <= newest]
        rows += [(dataset, *line) for line in executions.state(marks)]
    return spark.createDataFrame(rows, "dataset STRING, execution STRING, table_version BIGINT, applied BOOLEAN")


def version_at(lake: Lake, dataset: str, moment: datetime) -> int:
    table = lake.caught_up(dataset)
    if table is not None and (main := companions.main_of(table)) is not None:
        return companions.version_with(lake, dataset, version_at(lake, main, moment))
    oldest = moment
    for version, entry in lake.commits(table) if table else []:
        oldest = datetime.fromtimestamp(entry["timestamp"] / 1000, tz=timezone.utc)
        if oldest <= moment:
            return version
    raise ConfigurationError(
        what=f"{dataset} did not exist at {moment:%Y-%m-%d %H:%M:%S} (UTC)",
        where="--as-of",
        next_step=f"give a time from {oldest:%Y-%m-%dT%H:%M:%S} on",
    )


def _readable_at(lake: Lake, dataset: str, moment: datetime) -> int:
    version = version_at(lake, dataset, moment)
    if lake.is_readable(dataset, version):
        return version
    raise ConfigurationError(
        what=f"{dataset} of {moment:%Y-%m-%d %H:%M:%S} (UTC) can no longer be read: files of it were removed",
        where="--as-of",
        next_step=f"give a later time: what was replaced less than {READABLE.days} days ago is kept",
    )


def require_read_only(
    spark: SparkSession, query: str, views: Iterable[str], *, written: str = "", views_only: bool = False
) -> None:
    """Refuse a statement that does anything but read the given views; nothing of it is run."""
    from pyspark.errors import PySparkException

    for key, value in _SESSION.items():
        spark.conf.set(key, value)
    judged = spark.read.format("read-only-query").option("query", query).option("views", " ".join(views))
    judged = judged.option("views_only", str(views_only).lower())
    try:
        # The engine judges while Spark looks for the schema.
        judged.load().schema  # noqa: B018
    except PySparkException as error:
        text = str(error)
        if _REFUSED in text:
            refusal = text.partition(_REFUSED)[2].partition("\n")[0].strip()
            raise ConfigurationError(
                what=f"only queries are run here, over the lake's tables; this has {refusal}",
                where=f"'{(written or query).strip()[:60]}'",
                next_step=Remedy(
                    "read layer.table by SELECT, WITH, DESCRIBE or EXPLAIN, with functions that only compute; "
                    "tables are written by materializing datasets: ",
                    Run(),
                ),
            ) from error
        raise


_NESTED = ("array", "map", "struct")


def rows_of(frame: DataFrame, limit: int) -> list[list[Any]]:
    """Return plain values; times are texts in UTC, since Python has no year 0 and none after 9999."""
    kinds = [field.dataType.typeName() for field in frame.schema.fields]
    numbered = frame.limit(limit).toDF(*map(str, range(len(kinds))))
    texts = [_text(numbered[str(at)], kind).alias(str(at)) for at, kind in enumerate(kinds)]
    return [
        [json.loads(value) if value and kind in _NESTED else value for value, kind in zip(row, kinds, strict=True)]
        for row in numbered.select(*texts).collect()
    ]


def _text(column: Column, kind: str) -> Column:
    from pyspark.sql import functions as F

    if kind == "timestamp":
        return F.concat(column.cast("string"), F.lit("Z"))
    if kind in _NESTED:
        return F.to_json(column, {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"})
    return column.cast("string") if kind in ("timestamp_ntz", "date") else column
