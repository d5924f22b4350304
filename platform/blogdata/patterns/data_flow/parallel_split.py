"""Parallel Split: one read feeds several writers, none of which depends on another, and their results are compared.

Problem: a writer is being replaced, and for some weeks both have to run, to compare what they write. Two pipelines
would read and compute everything twice, and if they read at different times, they differ for that reason alone. One
pipeline that writes both lets the old one's faults stop the new one.

How it works: the rows of a partition are read once, at one version, and kept until every branch has taken them
(:class:`SharedRead`). Each branch is a step of its own: :func:`write` puts its file in place whole, and a receipt
beside it, which names the version it was written from. A branch that fails leaves the other branches' files alone. It
lacks the receipt of that version, so it alone is :func:`due` again. :func:`compare` reads both files back as their
readers do, and counts the rows that are equal, different, or there only once, and by how much they differ.

What waits for what: in the run of a partition the branches are executed one after the other, in one process, and side
by side where the deployment says so (`[dagster] steps_at_once`). So a slow branch may delay the other one by its own
time; a failed one does not keep it from running, whichever comes first. The comparison waits for both, and is not
executed if one failed. Other partitions are other runs: up to two at a time in a backfill, one at a time when the
sensor asks for them (Concurrent Runner).

The trap: comparing the frame that was written instead of the files. The old layout's rounding, quoting and missing
values are in the files only.

When not to use it: when a branch needs hours or other hardware than the rest. Then it is a dataset of its own, started
by the publication of its input (Isolated Sequencer).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from blogdata.patterns.ingestion.whole_files import write_whole

RECEIPT = "_receipt.json"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Version:
    """What the rows of a partition were read from.

    Args:
        table: Identifier of the table; a table that was built anew has another one, and counts its versions anew.
        version: The version in which the partition was published.
    """

    table: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One writer of a split; each partition is one file.

    Args:
        name: Name of the branch, and of its folder.
        file: Name of the file in the partition's folder.
        encode: Turns the rows into the file's content.
        decode: Parses a file as its readers do, into the columns that are compared.
    """

    name: str
    file: str
    encode: Callable[[pa.Table], bytes]
    decode: Callable[[bytes], pa.Table]

    def path(self, folder: Path, key: str) -> Path:
        """Return the file of a partition below a folder."""
        return folder / self.name / f"date={key}" / self.file


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a branch has written of a partition.

    Args:
        read: The version of its rows.
        rows: Number of rows.
        bytes: Size of the file.
        run_id: The run that wrote it.
    """

    read: Version
    rows: int
    bytes: int
    run_id: str


class SharedRead(Generic[T]):
    """Reads each partition once for all branches of a run, and forgets it when the last branch has taken it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, T] = {}
        self._left: dict[str, set[str]] = {}
        self.reads = 0

    def announce(self, key: str, branches: Collection[str]) -> None:
        """Declare which branches will take the rows of a partition."""
        with self._lock:
            self._left[key] = set(branches)

    def take(self, key: str, branch: str, read: Callable[[], T]) -> T:
        """Return the rows of a partition; only the first branch that takes them reads.

        Args:
            key: Key of the partition.
            branch: The branch that takes them.
            read: Reads the rows; an error it raises is raised here, and the next branch tries again.
        """
        with self._lock:
            if key in self._kept:
                rows = self._kept[key]
            else:
                rows = read()
                self.reads += 1
            left = self._left.get(key, set())
            left.discard(branch)
            if left:
                self._kept[key] = rows
            else:
                # Branch that runs alone, e.g. again, or the last one: nothing is kept for anyone.
                self._kept.pop(key, None)
            return rows

    @property
    def kept(self) -> int:
        """Number of partitions that are in memory."""
        return len(self._kept)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How the rows of two branches agree in one partition.

    Args:
        equal: Rows with the same key and the same values, within the tolerances.
        different: Rows with the same key and other values.
        only_first: Rows that only the first branch has; also the surplus of a key that it has more often.
        only_second: Rows that only the second branch has, likewise.
        largest: Column to the largest absolute difference of its numbers.
        examples: A few keys of rows that are not equal.
    """

    equal: int
    different: int = 0
    only_first: int = 0
    only_second: int = 0
    largest: Mapping[str, float] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """True if every row is equal."""
        return self.different + self.only_first + self.only_second == 0


def write(
    branch: Branch,
    folder: Path,
    key: str,
    rows: pa.Table,
    read: Version,
    *,
    run_id: str,
    report: Callable[[Receipt], None] = lambda _: None,
) -> Receipt:
    """Put the file of a partition in place, whole, and then its receipt.

    A process that dies in between leaves the receipt of the earlier version, so the partition is due again, and written
    again with the same content.

    Args:
        branch: The writer.
        folder: Folder of the split.
        key: Key of the partition.
        rows: All rows of the partition.
        read: What they were read from.
        run_id: The run that writes.
        report: Called when the file is in place, and before its receipt is: each receipt was reported.
    """
    content = branch.encode(rows)
    file = branch.path(folder, key)
    write_whole(file, content)
    receipt = Receipt(read=read, rows=rows.num_rows, bytes=len(content), run_id=run_id)
    report(receipt)
    write_whole(file.with_name(RECEIPT), json.dumps(asdict(receipt), sort_keys=True).encode())
    return receipt


def receipt(branch: Branch, folder: Path, key: str) -> Receipt | None:
    """Return what a branch has written of a partition; None if nothing, or if the file is gone."""
    file = branch.path(folder, key)
    try:
        found = json.loads(file.with_name(RECEIPT).read_bytes())
    except FileNotFoundError:
        return None
    if not file.is_file():
        return None
    return Receipt(**{**found, "read": Version(**found["read"])})


def due(branches: Iterable[Branch], folder: Path, key: str, published: Version) -> list[str]:
    """List the branches that have not written the published version of a partition."""
    found = [(branch.name, receipt(branch, folder, key)) for branch in branches]
    return [name for name, written in found if written is None or written.read != published]


def compare(
    first: pa.Table,
    second: pa.Table,
    *,
    key: Sequence[str],
    tolerances: Mapping[str, float] | None = None,
    most_examples: int = 5,
) -> Comparison:
    """Compare two tables of the same columns, row by row.

    Args:
        first: Rows of the first branch.
        second: Rows of the second branch.
        key: Columns that identify a row.
        tolerances: Column to the largest difference that still counts as equal, e.g. by rounding.
        most_examples: How many keys of unequal rows are kept.
    """
    allowed = tolerances or {}
    ours, theirs = _by_key(first, key), _by_key(second, key)
    equal = different = 0
    surplus = {"first": 0, "second": 0}
    largest: dict[str, float] = {}
    examples: list[str] = []
    for identity in sorted({*ours, *theirs}, key=repr):
        mine, others = ours.get(identity, []), theirs.get(identity, [])
        surplus["first"] += max(0, len(mine) - len(others))
        surplus["second"] += max(0, len(others) - len(mine))
        alike = len(mine) == len(others)
        for one, other in zip(mine, others, strict=False):
            found = dict(_differences(one, other, allowed))
            largest.update({name: max(by, largest.get(name, 0.0)) for name, by in found.items() if by < inf})
            equal, different = (equal, different + 1) if found else (equal + 1, different)
            alike = alike and not found
        if not alike and len(examples) < most_examples:
            examples.append(", ".join(str(part) for part in identity))
    return Comparison(
        equal=equal,
        different=different,
        only_first=surplus["first"],
        only_second=surplus["second"],
        largest=largest,
        examples=tuple(examples),
    )


def _by_key(table: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        rows[tuple(row.pop(name) for name in key)].append(row)
    return rows


def _differences(
    one: Mapping[str, Any], other: Mapping[str, Any], allowed: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    for name in one.keys() | other.keys():
        mine, theirs = one.get(name), other.get(name)
        if mine == theirs:
            continue
        by = abs(mine - theirs) if isinstance(mine, int | float) and isinstance(theirs, int | float) else inf
        # What is no number on one side differs by any tolerance.
        if not by <= allowed.get(name, 0.0):
            yield name, by
