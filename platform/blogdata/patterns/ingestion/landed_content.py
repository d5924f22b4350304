"""The lines of landed files beside those of the table that was published from them, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from blogdata.lake.lake import Lake
from blogdata.landing.lines import faults_of, kept_lines
from blogdata.publish.contract import Contract

_ROWS = 10_000


class Line(NamedTuple):
    """A line, in memory: its file (relative to the landing zone), its byte offset there, and its bytes."""

    file: str
    offset: int
    raw: bytes


def landed_lines(files: Iterable[Path], root: Path) -> Iterator[Line]:
    """Read the lines of landed files, plain or compressed; those that were erased are none."""
    for file in files:
        name = str(file.relative_to(root))
        with faults_of(file):
            yield from (Line(name, offset, raw) for offset, raw in kept_lines(file))


def published_lines(lake: Lake, contract: Contract, key: str) -> Iterator[Line]:
    columns = ("source_file", "source_offset", "raw")
    found = lake.columns(contract.dataset, columns, only=_only(contract, key))
    for batch in found.to_batches(max_chunksize=_ROWS):
        yield from map(Line, *(batch.column(name).to_pylist() for name in columns))


def published_sizes(lake: Lake, contract: Contract, key: str) -> dict[str, int]:
    names = lake.columns(contract.dataset, ("source_file",), only=_only(contract, key))["source_file"]
    return {found["values"]: found["counts"] for found in names.value_counts().to_pylist()}


def _only(contract: Contract, key: str) -> dict[str, Sequence[str]]:
    return {} if contract.partition_column is None else {contract.partition_column: [key]}
