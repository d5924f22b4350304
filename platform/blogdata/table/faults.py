"""Errors about tables and landed files: what happened to a write or to the store, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar
from urllib.parse import unquote

from blogdata.errors import (
    ConfigurationError,
    DiskFull,
    LandedFileUnreadable,
    LandedFileVanished,
    PlatformError,
    TransientError,
    foreign,
)
from blogdata.errors.remedies import Diagnose, Query, Remedy, Run
from blogdata.table.audit import Violation

AMBIGUOUS_CHANGE = "BLOGDATA_AMBIGUOUS_CHANGE"
UNMARKED_CHANGE = "BLOGDATA_UNMARKED_CHANGE"
"""Names of the errors that rows raise when they are written."""
TRIES = 100
"""How often something is committed that others come before."""


class AuditFailed(PlatformError):
    def __init__(self, dataset: str, violations: Sequence[Violation]) -> None:
        self.dataset = dataset
        self.violations = tuple(violations)
        self.partitions = frozenset(item.partition for item in self.violations)
        lines = [
            f"{item.rule} in partition '{item.partition}': found {item.found} ({item.detail})" for item in violations
        ]
        super().__init__(
            what="\n    - ".join([f"{len(lines)} audit(s) failed, nothing was published:", *lines]),
            where=dataset,
            next_step="readers still see the last audited version; mend the input or the contract, then run again",
        )


class WriteRefused(PlatformError):
    """Spark or Delta refused the rows; nothing was written."""


class ConcurrentWrite(PlatformError):
    transient: ClassVar[bool] = True

    def __init__(
        self,
        *,
        where: str,
        what: str = "another run published the same partitions while this one was writing",
        next_step: str = "nothing of this run was published; it is retried, or run it again",
    ) -> None:
        super().__init__(what=what, where=where, next_step=next_step)


class NotDeclared(PlatformError):
    """A job reads or writes a dataset that its contract does not declare."""

    def __init__(self, job: str, reached: str, *, writes: bool = False) -> None:
        self.reached = reached
        declare = f"declare it among the inputs of {job} (`reads` of its contract), or compute it without"
        super().__init__(
            what=f"the job {'writes' if writes else 'reads'} {reached}, which it does not declare; "
            "nothing was published",
            where=job,
            next_step="publish it by a job of its own" if writes else declare,
        )


class StoreNotWritable(PlatformError):
    """The folder of a table, or the whole file system, is not writable."""


class LogDamaged(PlatformError):
    """A file of a table's log cannot be read."""

    def __init__(self, where: str, file: str) -> None:
        again = "bring it back from a backup; or move the folder of the table away, and compute it again: "
        meanwhile = "; earlier versions can be read meanwhile, as in: "
        super().__init__(
            what="a file of the table's log is gone, cut off or garbled" + (f": {file}" if file else ""),
            where=where,
            next_step=Remedy(again, Run(), meanwhile, Query(sql="SELECT ...", as_of="TIME")),
        )


class DataFileDamaged(PlatformError):
    """A data file that the newest version of a table needs is gone, or differs from what was written."""

    def __init__(self, where: str, file: str, problem: str) -> None:
        see = "see which partition is concerned, and how to compute it again: "
        again = "; or move the folder of the table away, and compute all of it again: "
        super().__init__(
            what=f"a data file is damaged: {file or where}: {problem}",
            where=where,
            next_step=Remedy(see, Diagnose(), again, Run()),
        )


def contended(where: str, what: str) -> TransientError:
    """Build the error for a table that others changed at every try of what was about to be done."""
    what = f"others changed the table {TRIES} times while this was about to {what}"
    return TransientError(what=what, where=where, next_step="run it again; when it repeats, fewer runs at once")


_RAISED = r"\[USER_RAISED_EXCEPTION\] "
"""As Spark writes it: the name alone is also in plans, which it prints in other errors."""
_OF_A_WRITE: tuple[tuple[str, type[PlatformError], str, str], ...] = (
    (
        "DATA_SOURCE_NOT_FOUND",
        ConfigurationError,
        "this Spark server has not loaded the engine's jar, so nothing was written",
        Remedy("on driver and executors load the jar that this names: ", Diagnose()),
    ),
    (
        r"\[BLOGDATA_ENCRYPTION\]",
        ConfigurationError,
        "a worker of Spark cannot read a key, so nothing is written in the clear either",
        "use a Spark server on a machine, and of a user, that reads the deployment's secrets",
    ),
    (
        "ConcurrentModification|DELTA_(CONCURRENT|PROTOCOL_CHANGED|METADATA_CHANGED)",
        ConcurrentWrite,
        "another run published or altered the table while this one was writing",
        "nothing of this run was published; it is retried, or run it again",
    ),
    (
        rf"{_RAISED}\[{AMBIGUOUS_CHANGE}\]",
        WriteRefused,
        "several changes have the key of one row",
        "decide in the computation which change of a key counts",
    ),
    (
        rf"{_RAISED}\[{UNMARKED_CHANGE}\]",
        WriteRefused,
        "a change has null where it is marked as removed or not",
        "have the computation mark every change, with false where its row stays",
    ),
    (
        "VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT",
        WriteRefused,
        "a row breaks a constraint of the table: ",
        "look the rule up in the dataset's contract and mend the row's source",
    ),
    (
        "UNRESOLVED_COLUMN|CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE",
        WriteRefused,
        "the columns, or a value in them, are not those of the contract: ",
        "make the step produce the columns its contract declares",
    ),
)
"""Sign of an error of Spark or Delta, what it is here, and what next; a text that ends in a colon goes on with it."""
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


@contextmanager
def typed_errors(where: str) -> Iterator[None]:
    """Raise errors of Spark, Delta and the store as typed ones, with the original as cause; others pass unchanged."""
    try:
        yield
    except PlatformError:
        raise
    except Exception as error:
        known = _of_a_write(error, where) or of_the_store(str(error), where)
        if known is None:
            raise
        raise known from error


def _of_a_write(error: Exception, where: str) -> PlatformError | None:
    # Only Spark's errors have a condition.
    for sign, kind, what, next_step in _OF_A_WRITE if hasattr(error, "getCondition") else ():
        if re.search(sign, str(error)):
            detail = foreign.unquoted(error) if what.endswith(": ") else ""
            return kind(what=what + detail, where=where, next_step=next_step)
    return None


def of_the_store(text: str, where: str) -> PlatformError | None:
    """Classify an error message of Spark, Delta or the operating system; None if it is not about the store."""
    if _FULL.search(text):
        return DiskFull(where)
    if landed := _landed_file_in(text):
        # Java reports "not found" also for a file it has no permission to open.
        gone = "Permission denied" not in text and _GONE.search(text)
        return LandedFileVanished(landed) if gone else LandedFileUnreadable(landed, "Spark cannot read it")
    if _NOT_WRITABLE.search(text):
        return StoreNotWritable(
            what="the store takes no writes: it is mounted read-only, or belongs to another user",
            where=where,
            next_step="make it writable for the user who runs this, and run it again; nothing was published",
        )
    match = _FILE.search(text)
    file = match[1] if match else ""
    if _DATA.search(text) and "_delta_log" not in text.split("JVM stacktrace")[0]:
        return DataFileDamaged(where, file, "it is gone, cut off or garbled")
    if _UNREADABLE.search(text) and _LOG.search(text):
        return LogDamaged(where, file)
    return None


def _landed_file_in(text: str) -> str:
    match = _LANDED.search(text)
    if match is None or "/_delta_log/" in match[2] or match[2].endswith((".parquet", ".bin")):
        return ""
    # A URI (three slashes) is percent-encoded, a path is not.
    return unquote(match[2]) if match[1] == "file://" else match[2]
