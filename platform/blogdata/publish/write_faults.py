"""Errors of a write: one class for each remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from blogdata.errors import ConfigurationError, PlatformError, foreign
from blogdata.errors.remedies import Diagnose, Remedy
from blogdata.lake import store_faults
from blogdata.lake.committer import ConcurrentWrite
from blogdata.publish.audit import Violation

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

AMBIGUOUS_CHANGE = "BLOGDATA_AMBIGUOUS_CHANGE"
UNMARKED_CHANGE = "BLOGDATA_UNMARKED_CHANGE"
"""Names of the errors that rows raise when they are written."""
_UNKNOWN_SOURCE = "DATA_SOURCE_NOT_FOUND"


class AuditFailed(PlatformError):
    """The rows broke audits; nothing was published."""

    def __init__(self, dataset: str, violations: Sequence[Violation]) -> None:
        self.dataset = dataset
        self.violations = tuple(violations)
        self.partitions = frozenset(item.partition for item in self.violations)
        lines = "".join(
            f"\n    - {item.rule} in partition '{item.partition}': found {item.found} ({item.detail})"
            for item in self.violations
        )
        super().__init__(
            what=f"{len(self.violations)} audit(s) failed, nothing was published:{lines}",
            where=dataset,
            next_step="readers still see the last audited version; mend the input or the contract, then run again",
        )


class ConstraintViolated(PlatformError):
    """Delta's own constraints refused a row."""


class SchemaMismatch(PlatformError):
    """The written columns are not those of the table."""


class AmbiguousChange(PlatformError):
    """Several changes of a merge match one row."""


class UnmarkedChange(PlatformError):
    """A change of a merge has null where it must mark its row as removed or not."""


class NotDeclared(PlatformError):
    """A job reads or writes a dataset that its contract does not declare."""

    def __init__(self, job: str, reached: str, *, writes: bool = False) -> None:
        self.reached = reached
        declare = f"declare it among the inputs of {job} (`reads` of its contract)"
        does = "writes" if writes else "reads"
        super().__init__(
            what=f"the job {does} {reached}, which it does not declare; nothing was published",
            where=job,
            next_step="publish it by a job of its own" if writes else f"{declare}, or compute it without",
        )


class PublicationUnknown(PlatformError):
    """The write returned, but its commit is not in the log."""

    transient: ClassVar[bool] = True

    def __init__(self, dataset: str, commit_id: str) -> None:
        super().__init__(
            what=f"the write returned but no commit '{commit_id}' is in the log",
            where=dataset,
            next_step="run the step again: a batch that was published is not published twice",
        )


@contextmanager
def translated(dataset: str, partitions: Sequence[str]) -> Iterator[None]:
    """Translate errors of Spark and Delta about a failed write into this module's errors.

    Raises:
        PlatformError: The typed error; the original one is its cause. Unknown errors pass unchanged.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        typed = _typed(error, dataset, partitions)
        if typed is None:
            raise
        raise typed from error


_ANOTHER_SHAPE = (
    "UNRESOLVED_COLUMN",
    "SCHEMA_MISMATCH",
    "FAILED_TO_MERGE_FIELDS",
    "CONSTRAINT_DATA_TYPE_MISMATCH",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
)
"""Names of Spark's and Delta's errors about columns or values that do not fit the table."""


def _typed(error: PySparkException, dataset: str, partitions: Sequence[str]) -> PlatformError | None:
    condition = error.getCondition() or ""
    text = str(error)
    where = f"{dataset} {partitions[0]}..{partitions[-1]}" if partitions else dataset
    if _UNKNOWN_SOURCE in text:
        return ConfigurationError(
            what="this Spark server has not loaded the engine's jar, so nothing was written",
            where=where,
            next_step=Remedy("on driver and executors load the jar that this names: ", Diagnose()),
        )
    if "CONCURRENT" in condition or "ConcurrentModification" in text or "DELTA_CONCURRENT" in text:
        return ConcurrentWrite(
            what="another run published the same partitions while this one was writing",
            where=where,
            next_step="nothing of this run was published; it is retried, or run it again",
        )
    if "DELTA_PROTOCOL_CHANGED" in text or "DELTA_METADATA_CHANGED" in text:
        return ConcurrentWrite(
            what="another run created or altered the table while this one was about to write it",
            where=where,
            next_step="nothing of this run was published; it is retried, or run it again",
        )
    if "MULTIPLE_SOURCE_ROW_MATCHING" in text or _raised(AMBIGUOUS_CHANGE, text):
        return AmbiguousChange(
            what="several changes have the key of one row",
            where=where,
            next_step="nothing was written; decide in the computation which change of a key counts",
        )
    if _raised(UNMARKED_CHANGE, text):
        return UnmarkedChange(
            what="a change has null where it is marked as removed or not",
            where=where,
            next_step="nothing was written; have the computation mark every change, with false where its row stays",
        )
    if "VIOLATE_CONSTRAINT" in text or "NOT_NULL_CONSTRAINT" in text:
        return ConstraintViolated(
            what=f"a row breaks a constraint of the table: {foreign.unquoted(error)}",
            where=where,
            next_step="nothing was written; look the rule up in the dataset's contract and mend the row's source",
        )
    if any(name in text for name in _ANOTHER_SHAPE):
        return SchemaMismatch(
            what=f"the columns, or a value in them, are not those of the contract: {foreign.unquoted(error)}",
            where=where,
            next_step="nothing was written; make the step produce the columns its contract declares",
        )
    return store_faults.classify(text, where)


def _raised(what: str, text: str) -> bool:
    # Matched with Spark's prefix: the name alone is also in plans, which Spark prints in other errors.
    return f"[USER_RAISED_EXCEPTION] [{what}]" in text
