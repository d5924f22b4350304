"""The places of a deployment that have values of persons: tables by their contracts, others as the page lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from quality.contracts import EVERY

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "persons.md"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Files of a deployment that have values of persons.

    Args:
        files: Patterns of their paths below the home, with landing zone and lake at their default places.
        columns: Names of the columns that single somebody out; none for what is no table.
        always: Every deployment with such data has them; False: only if something else happens.
    """

    name: str
    files: tuple[str, ...]
    columns: tuple[str, ...] = ()
    always: bool = True

    def has(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.files)


def places() -> Iterator[Place]:
    for contract in EVERY.values():
        if columns := tuple(column.name for column in contract.columns if column.singles_out):
            # A dataset of several tables has them beside its own folder.
            files = tuple(f"lake/{contract.layer}/{own}{contract.name}/*.parquet" for own in ("", "_"))
            yield Place(name=contract.dataset, files=files, columns=columns)
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and (files := tuple(re.findall(r"`([^`]+)`", cells[1]))):
            yield Place(name=cells[0], files=files, always=cells[3] != "possibly")


PLACES = tuple(places())
