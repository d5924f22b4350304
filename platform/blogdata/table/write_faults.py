"""Errors of a write: one class for each remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError, foreign
from blogdata.errors.remedies import Diagnose, Remedy
from blogdata.table import store_faults
from blogdata.table.audit import Violation
from blogdata.table.committer import ConcurrentWrite

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

AMBIGUOUS_CHANGE = "BLOGDATA_AMBIGUOUS_CHANGE"
UNMARKED_CHANGE = "BLOGDATA_UNMARKED_CHANGE"
"""Names of the errors that rows raise when they are written."""


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


class NotDeclared(PlatformError):
    """A job reads or writes a dataset that its contract does not declare."""

    def __init__(self, job: str, reached: str, *, writes: bool = False) -> None:
        self.reached = reached
        does = f"the job {'writes' if writes else 'reads'} {reached}"
        declare = f"declare it among the inputs of {job} (`reads` of its contract), or compute it without"
        next_step = "publish it by a job of its own" if writes else declare
        super().__init__(
            what=f"{does}, which it does not declare; nothing was published", where=job, next_step=next_step
        )


@contextmanager
def translated(dataset: str, partitions: Sequence[str]) -> Iterator[None]:
    """Raise errors of Spark and Delta about a failed write as typed ones; unknown ones pass unchanged."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        typed = _typed(error, dataset, partitions)
        if typed is None:
            raise
        raise typed from error


_RAISED = r"\[USER_RAISED_EXCEPTION\] "
"""As Spark writes it: the name alone is also in plans, which it prints in other errors."""
_FAULTS: tuple[tuple[str, type[PlatformError], str, str], ...] = (
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


def _typed(error: PySparkException, dataset: str, partitions: Sequence[str]) -> PlatformError | None:
    text = str(error)
    where = f"{dataset} {partitions[0]}..{partitions[-1]}" if partitions else dataset
    if "DATA_SOURCE_NOT_FOUND" in text:
        return ConfigurationError(
            what="this Spark server has not loaded the engine's jar, so nothing was written",
            where=where,
            next_step=Remedy("on driver and executors load the jar that this names: ", Diagnose()),
        )
    for sign, kind, what, next_step in _FAULTS:
        if re.search(sign, text):
            detail = foreign.unquoted(error) if what.endswith(": ") else ""
            return kind(what=what + detail, where=where, next_step=next_step)
    return store_faults.classify(text, where)
