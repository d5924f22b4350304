"""Vertical Partitioner: wide columns that few readers need are stored apart, joined by key, and kept as long as needed.

Problem: each row has a text that is wider than all of its other columns together. To write the row again for one
changed value writes and shuffles the text again, and it is kept for as long as the rest.
How it works: :func:`split` takes the wide columns out of a contract and names the dataset that has them, with the key
of its rows (:class:`blogdata.contract.schema.Wide`). The raw line of a visit event is stored once, in `bronze.visits`;
`silver.visits` has its place in the landing zone, and an hour that is computed again does not write the line again.
There is no second write, and nothing that can be lost between two. :func:`whole` joins both: `silver.visits_whole` in
`blogdata sql` and in the views for other readers. Each part has its own `retention_days`; an event whose line has
expired stays, with null in its place.

The same keeps personal data apart, so that it can be removed (ch. 7). `silver.identities` has each login and e-mail of
a user once, by a token: a keyed hash of the user, the login and the e-mail (Pseudo-Anonymizer). `silver.users` and
`silver.users_current` have the token, so nothing that is computed from them has a login or an e-mail;
`silver.users_whole` joins them for who may see them. Without its row of the one small table, a token leads nowhere.
The trap: a table of its own for the wide columns, with the same key and partitions. That is a second copy, a second
file for each hour, and a text that is still written again with each row. Another trap: the join shows the line that is
at a place now. If a landed file was replaced, its hours are computed anew by the next run; until then a line of another
time is not shown (the time is part of the key), but one of the same time is.
When not to use it: to read less: a reader of a columnar file reads only the columns that it selects. And it is not
enough for removal: lines as received (bronze, the landing zone) and columns of `bronze.visits` and `silver.visits` have
the values; `blogdata forget` removes these.
Source: Data Engineering Design Patterns, ch. 8, and ch. 7 for removal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.contract.schema import Wide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def split(contract: Contract, columns: Collection[str], *, of: str, key: Sequence[str]) -> Contract:
    """Take columns out of a contract that the dataset `of` (`layer.table`) has under the same names."""
    wide = tuple(column for column in contract.columns if column.name in columns)
    return replace(
        contract,
        columns=tuple(column for column in contract.columns if column not in wide),
        wide=Wide(columns=wide, of=of, key=tuple(key)),
    )


def whole(rows: DataFrame, lines: DataFrame, contract: Contract) -> DataFrame:
    """Join the wide columns to the rows of a dataset, last; null where the other dataset no longer has the row."""
    wide = contract.wide
    assert wide is not None, f"{contract.dataset} is not split"
    joined = rows.join(lines.select(*wide.key, *wide.names), list(wide.key), "left")
    return joined.select(*rows.columns, *wide.names)


def query(present: Collection[str], contract: Contract, *, rows: str, lines: str, quote: str) -> str:
    """Build the SQL of the same view, for engines that run without the platform."""
    assert contract.wide is not None, f"{contract.dataset} is not split"
    key, narrow, wide = (
        ", ".join(f"{quote}{name}{quote}" for name in names)
        for names in (contract.wide.key, present, contract.wide.names)
    )
    joined = f"LEFT JOIN (SELECT {key}, {wide} FROM {lines}) AS lines USING ({key})"
    return f"SELECT {narrow}, {wide} FROM {rows} {joined}"
