"""Parallel Split: one read feeds several writers, none of which depends on another, and their results are compared.

Problem: a writer is being replaced, and for some weeks both have to run, to compare what they write. Two pipelines
would read and compute everything twice, and if they read at different times, they differ for that reason alone. One
pipeline that writes both lets the old one's faults stop the new one.
How it works: the rows of a partition are read once, at one version, and :func:`split` gives them to every writer. Each
file is put in place whole. A writer that fails keeps no other from writing: the error is raised when all have tried,
and names those that failed; their readers keep the earlier file. :func:`compare` reads both files back as their readers
do, and counts the rows that only one of them has, with examples.
The trap: comparing the frame that was written instead of the files. The old layout's rounding, quoting and missing
values are in the files only.
When not to use it: when a writer needs hours or other hardware than the rest. Then it is a dataset of its own, started
by the publication of its input (Isolated Sequencer).
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from blogdata.errors import PlatformError, foreign
from blogdata.files import write_whole

_EXAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One writer of a split; each partition is one file."""

    name: str
    file: str
    encode: Callable[[pa.Table], bytes]
    decode: Callable[[bytes], Iterable[tuple[str | int, ...]]]

    def path(self, folder: Path, key: str) -> Path:
        return folder / self.name / f"date={key}" / self.file


def split(writers: Sequence[Writer], rows: pa.Table, folder: Path, key: str) -> None:
    """Have each writer put the file of a partition in place, whole."""
    faults: dict[str, Exception] = {}
    for writer in writers:
        try:
            write_whole(writer.path(folder, key), writer.encode(rows))
        except Exception as error:  # noqa: BLE001 - raised when the other writers have written
            faults[f"the {writer.name} file cannot be written: {foreign.unquoted(error)}"] = error
    if faults:
        raise PlatformError(
            what="; ".join(faults),
            where=key,
            next_step="mend the writer, or make room in its folder; then materialize the partition again",
        ) from next(iter(faults.values()))


def compare(writers: Sequence[Writer], folder: Path, key: str) -> dict[str, Any]:
    """Count the rows that the files of two writers share, and those that only one has, with examples of these.

    A changed row counts as one of each; of one writer there is nothing to compare.
    """
    if len(writers) == 1:
        return {}
    ours, theirs = (Counter(writer.decode(writer.path(folder, key).read_bytes())) for writer in writers)
    lost, added = ours - theirs, theirs - ours
    return {
        "equal": (ours & theirs).total(),
        "only_first": lost.total(),
        "only_second": added.total(),
        "examples": sorted((lost + added).elements())[:_EXAMPLES],
    }
