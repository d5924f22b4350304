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
    persons: int
    one: int
    """Of how many persons exactly one candidate was left: all that the table says of it is theirs."""
    told: int
    """Of how many all candidates had the same sensitive value."""
    least: int
    """The fewest candidates of a person that were there at all; 0 if none was found."""


def attack(known: Iterable[Row], table: Iterable[Row], by: Sequence[str], *, candidate: str, sensitive: str) -> Found:
    """Look for persons, of whom a value of each column is known, in a table by some columns.

    A row may have :data:`ANY` in their place; of several rows that fit, those with the fewest such values are taken.
    The distinct values of `candidate` are the candidates; the attacker wants to learn `sensitive`.
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
