"""Where the planted values are, and may be: files of a home, columns of its tables and footers of Parquet files.

Tables say it by their contracts, other places as the page lists them.
"""

from __future__ import annotations

import gzip
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lineage import canaries
from lineage.canaries import Canaries, Canary
from lineage.deployment import Deployment
from quality.contracts import EVERY

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "persons.md"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Files of a deployment that have values of persons."""

    name: str
    files: tuple[str, ...]
    """Patterns of their paths below the home, with landing zone and lake at their default places."""
    columns: tuple[str, ...] = ()
    """Those that single somebody out; none for what is no table."""
    always: bool = True
    """Every deployment with such data has them; False: only if something else happens."""

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


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where planted values were found: in files below the home, and in columns of datasets."""

    files: Mapping[str, set[Canary]]
    columns: Mapping[tuple[str, str], set[Canary]]
    limits: set[Canary]
    """Those that a footer of a Parquet file has as the least or greatest of a row group; refused batches aside."""
    limited: set[tuple[str, str]]
    """Datasets and columns of which a footer has the least and the greatest value; refused batches aside."""
    home: Path
    planted: Canaries

    @property
    def of_persons(self) -> list[str]:
        """The files with a value that identifies somebody."""
        return [path for path, values in self.files.items() if any(value.identifies for value in values)]


def add_derived(made: Deployment, planted: Canaries) -> None:
    """Add the ids that the platform has derived from planted values: keyed hashes of clients, and sessions."""
    addresses = {canary.token for canary in planted.every if canary.field == "address"}
    derived = [
        Canary(kind="request", field=name, token=value)
        for address, *ids in made.rows("silver.visits", "ip", "visit_id", "user_id")
        if address in addresses
        for name, value in zip(("visit_id", "user_id"), ids, strict=True)
    ]
    assert derived
    sessions = [id_ for id_, hour in made.rows("silver.sessions", "session_id", "event_hour") if hour >= canaries.FIRST]
    assert sessions
    planted.every.extend([*derived, *(Canary(kind="session", field="session_id", token=id_) for id_ in sessions)])


def find(home: Path, planted: Canaries) -> Found:
    """Look for all planted values in all files of a home."""
    files: defaultdict[str, set[Canary]] = defaultdict(set)
    columns: defaultdict[tuple[str, str], set[Canary]] = defaultdict(set)
    limits, limited = set[Canary](), set[tuple[str, str]]()
    for file in sorted(home.rglob("*")):
        if not file.is_file():
            continue
        path = file.relative_to(home).as_posix()
        for column, content in _contents(file):
            values = set(planted.found_in(content))
            files[path] |= values
            if column and path.startswith("lake/"):
                columns[_dataset(path), column] |= values
        if file.suffix == ".parquet" and "/lake/refused/" not in file.as_posix():
            pairs = list(_limits(file))
            limits |= set(planted.found_in(repr([pair for _, pair in pairs]).encode()))
            if path.startswith("lake/"):
                limited |= {(_dataset(path), column) for column, _ in pairs}
    known = {where: values for where, values in columns.items() if where[0] in EVERY}
    return Found(files=files, columns=known, limits=limits, limited=limited, home=home, planted=planted)


def _contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Return the bytes of a file as they are, and readable: each column of a Parquet file with its name."""
    content = file.read_bytes()
    yield "", content
    if content.startswith(b"\x1f\x8b"):
        yield "", gzip.decompress(content)
    elif content.startswith(b"PAR1"):
        table = pq.ParquetFile(file).read()
        for name in table.column_names:
            yield name, repr(table[name].to_pylist()).encode()
    elif content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            yield "", "\n".join(database.iterdump()).encode()


def _limits(file: Path) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Return the limits in the footer of a file, with their columns."""
    footer = pq.read_metadata(file)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.statistics and chunk.statistics.has_min_max:
                yield chunk.path_in_schema.partition(".")[0], (chunk.statistics.min, chunk.statistics.max)


def _dataset(path: str) -> str:
    _, layer, table, *_ = path.split("/")
    return f"{layer}.{table.removeprefix('_')}"
