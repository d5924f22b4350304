"""Typed errors for a failing store: what happened to a table or a landed file, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from blogdata.errors import DiskFull, LandedFileUnreadable, LandedFileVanished, PlatformError, TransientError
from blogdata.errors.remedies import Diagnose, Query, Remedy, Run

_FILE = re.compile(r"""(?:^|[\s'"(])(?:file:(?://)?)?(/[^\s,]+\.(?:parquet|json|bin))""")
_LANDED = re.compile(
    r"(?:error while reading file|Path does not exist:) (file:(?://)?)?(/[^\n]*?/date=[^\n]*?)\.(?:\s|$)"
)
"""Message of Spark or its workers about a file in a landing zone folder; files of tables are elsewhere, or Parquet."""
_GONE = re.compile("PATH_NOT_FOUND|FILE_NOT_EXIST|NoSuchFileException|FileNotFoundE(xception|rror)")
_NOT_WRITABLE = re.compile(
    "Read-only file system|ReadOnlyFilesystem|Permission ?[Dd]enied|Mkdirs failed to create|"
    "DELTA_CANNOT_CREATE_LOG_PATH"
)
_FULL = re.compile("No space left on device|StorageFull|Disk quota exceeded")
_UNREADABLE = re.compile("is not a Parquet file|MalformedInput|Kernel error|ChecksumException")
_LOG = re.compile(
    "_delta_log|Kernel error: (Json error|Arrow error: Parquet error|Invalid Checkpoint)|LogSegment end version|"
    "No table metadata or protocol|DELTA_TRUNCATED"
)
_DATA = re.compile(
    "PATH_NOT_FOUND|FAILED_READ_FILE|Deletion Vector error|Kernel error: File not found|Object at location|"
    "Requested range was invalid|Parquet magic bytes not found|ChecksumException"
)
"""Messages of Spark, Delta and Arrow about a data file that they cannot read."""
TRIES = 100
"""How often something is committed that others come before."""


class StoreNotWritable(PlatformError):
    """The folder of a table, or the whole file system, is not writable."""


class LogDamaged(PlatformError):
    """A file of a table's log cannot be read."""


class DataFileDamaged(PlatformError):
    """A data file that the newest version of a table needs is gone, or differs from what was written."""


@contextmanager
def store_faults(where: str) -> Iterator[None]:
    """Raise the store's errors as typed ones, with the original as their cause; others pass unchanged."""
    try:
        yield
    except PlatformError:
        raise
    except Exception as error:
        typed = classify(str(error), where)
        if typed is None:
            raise
        raise typed from error


def classify(text: str, where: str) -> PlatformError | None:
    """Classify an error message of Spark, Delta or the operating system; None if it is not about the store."""
    if _FULL.search(text):
        return DiskFull(where)
    if landed := landed_file_in(text):
        # Java reports "not found" also for a file it has no permission to open.
        gone = "Permission denied" not in text and _GONE.search(text)
        return LandedFileVanished(landed) if gone else LandedFileUnreadable(landed, "Spark cannot read it")
    if _NOT_WRITABLE.search(text):
        return StoreNotWritable(
            what="the store takes no writes: it is mounted read-only, or belongs to another user",
            where=where,
            next_step="make it writable for the user who runs this, and run it again; nothing was published",
        )
    if _DATA.search(text) and "_delta_log" not in text.split("JVM stacktrace")[0]:
        return data_file_damaged(where, file_in(text), "it is gone, cut off or garbled")
    if _UNREADABLE.search(text) and _LOG.search(text):
        return log_damaged(where, file_in(text))
    return None


def contended(where: str, what: str) -> TransientError:
    """Build the error for a table that others changed at every try of what was about to be done."""
    what = f"others changed the table {TRIES} times while this was about to {what}"
    return TransientError(what=what, where=where, next_step="run it again; when it repeats, fewer runs at once")


def log_damaged(where: str, file: str) -> LogDamaged:
    again = "bring it back from a backup; or move the folder of the table away, and compute it again: "
    meanwhile = "; earlier versions can be read meanwhile, as in: "
    return LogDamaged(
        what="a file of the table's log is gone, cut off or garbled" + (f": {file}" if file else ""),
        where=where,
        next_step=Remedy(again, Run(), meanwhile, Query(sql="SELECT ...", as_of="TIME")),
    )


def data_file_damaged(where: str, file: str, problem: str) -> DataFileDamaged:
    see = "see which partition is concerned, and how to compute it again: "
    again = "; or move the folder of the table away, and compute all of it again: "
    return DataFileDamaged(
        what=f"a data file is damaged: {file or where}: {problem}",
        where=where,
        next_step=Remedy(see, Diagnose(), again, Run()),
    )


def landed_file_in(text: str) -> str:
    match = _LANDED.search(text)
    if match is None or "/_delta_log/" in match[2] or match[2].endswith((".parquet", ".bin")):
        return ""
    # A URI (three slashes) is percent-encoded, a path is not.
    return unquote(match[2]) if match[1] == "file://" else match[2]


def file_in(text: str) -> str:
    """Find the path of the file that an error is about; empty if it names none."""
    match = _FILE.search(text)
    return match[1] if match else ""
