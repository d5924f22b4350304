"""An attack by linkage: who knows of one page view of a person looks for that person in a table.

The attacker knows the page, the part of the day, the browser and the country, and that the person is in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from blogdata.patterns.security.anonymizer import ANY

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an attacker found.

    Args:
        persons: How many persons were looked for.
        one: Of how many exactly one candidate was left: all that the table says of it is theirs.
        told: Of how many all candidates had the same sensitive value.
        least: The fewest candidates of a person that were there at all; 0 if none was found.
    """

    persons: int
    one: int
    told: int
    least: int


def attack(known: Iterable[Row], table: Iterable[Row], by: Sequence[str], *, candidate: str, sensitive: str) -> Found:
    """Look for persons in a table.

    Args:
        known: What is known of each person: a value of each column.
        table: Rows with these columns, or :data:`ANY` in their place; of several rows that fit, those with the fewest
            such values are taken, as an attacker would.
        by: Columns by which rows are found.
        candidate: Column whose distinct values are the candidates, within rows of the same values of `by`.
        sensitive: Column that the attacker wants to learn.
    """
    rows: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        rows.setdefault(tuple(row[name] for name in by), []).append(row)
    persons = one = told = 0
    sizes = []
    for person in known:
        persons += 1
        found = _fitting(rows, [person[name] for name in by])
        if found:
            sizes.append(len({row[candidate] for row in found}))
            one += sizes[-1] == 1
            told += len({row[sensitive] for row in found}) == 1
    return Found(persons=persons, one=one, told=told, least=min(sizes, default=0))


def _fitting(rows: Mapping[tuple[Any, ...], list[Row]], values: Sequence[Any]) -> list[Row]:
    """Return the rows of the most exact group that fits."""
    for key in sorted(product(*[(value, ANY) for value in values]), key=lambda key: key.count(ANY)):
        if key in rows:
            return rows[key]
    return []
