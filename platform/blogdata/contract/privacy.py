"""Whom columns identify, and what consumers do not see: personal and technical columns, and who asked not to be named.

Pattern: Metadata Decorator (:mod:`blogdata.patterns.data_value.metadata_decorator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TECHNICAL = frozenset(
    "raw source_file source_offset arrival_hour load_date format reasons occurrences conflicts batch".split()
)
"""Columns that describe how a row was produced, not the fact itself."""
CONSUMERS = "_public"
"""Suffix of the name of a dataset's consumer view."""


def require_subjects(contracts: Iterable[Contract]) -> None:
    for contract in contracts:
        if undecided := [column.name for column in contract.columns if column.undecided]:
            raise ConfigurationError(
                what=f"it is not declared whom these columns identify: {', '.join(undecided)}",
                where=contract.dataset,
                next_step="declare `subject` for each of them; `fact` of quality/contracts/columns.py leads to nobody",
            )


def visible(contract: Contract) -> tuple[str, ...]:
    """List the columns a consumer may see (not personal) and build on (not technical, but for keys), in order."""
    hidden = TECHNICAL - {*contract.key, contract.partition_column}
    columns = contract.columns if contract.shared else ()
    return tuple(column.name for column in columns if not column.personal and column.name not in hidden)


def consumer_view(frame: DataFrame, contract: Contract) -> DataFrame:
    """Hide the columns that a consumer must not see, or must not build on."""
    names = [name for name in visible(contract) if name in frame.columns]
    if not names:
        raise ConfigurationError(
            what="the dataset has no columns for consumers: each is personal or technical, or it is not shared",
            where=contract.dataset,
            next_step="classify the columns a consumer may see, or do not offer a view of this dataset",
        )
    return frame.select(*[f"`{name}`" for name in names])
