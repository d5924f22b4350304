"""The audits of a write before its commit: specified from the contract, then judged on the rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.lake.commit import WHOLE_TABLE, Account, Entry
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Audit, Failed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HELD = "held."
"""Prefix of the measure that says whether an audit held which does not refuse the publication."""
_GUARD = "audit:"
FROZEN = "frozen"
"""Guard that a person lifts to have a frozen period replaced."""
FileFigures = tuple[int, int]
"""Lines of a landed file, and their bytes, each with a line feed."""
_FILE = "source_file"
_FILE_FIGURES = ("count(1)", "sum(length(raw) + 1)")
_NAMED = 5
"""Files of a partition that are named if they differ."""


def guard_of(dataset: str, audit: str) -> str:
    """Return the name of the guard that a person lifts to publish a dataset although an audit failed."""
    return f"{_GUARD}{dataset}:{audit}"


def lifted_audits(accepted: Collection[str], dataset: str) -> frozenset[str]:
    """Return the names of the audits of a dataset among the guards that a person has lifted."""
    own = guard_of(dataset, "")
    return frozenset(name.removeprefix(own) for name in accepted if name.startswith(own))


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One audit that one partition failed."""

    rule: str
    partition: str
    detail: str
    found: Any


@dataclass(frozen=True, kw_only=True)
class AuditSpec:
    """The audits of one write; the engine's Java counterpart reads it as JSON."""

    partition_column: str | None
    partitions: tuple[str, ...]
    measures: Mapping[str, str]
    violations: Mapping[str, str]
    unique: Mapping[str, str]
    audits: Mapping[str, str]
    expected: Mapping[str, Mapping[str, int]]
    files: Mapping[str, Mapping[str, FileFigures]]
    breakdowns: Mapping[str, tuple[str, ...]]
    info: Mapping[str, Any]
    lake: str = ""
    may_read: tuple[str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the specification as plain values."""
        return {**asdict(self), "file_column": _FILE, "file_figures": _FILE_FIGURES, "most_named": _NAMED}


def specify(
    contract: Contract,
    partitions: Sequence[str],
    accounts: Mapping[str, Account],
    info: Mapping[str, Any],
    *,
    expected: Mapping[str, Mapping[str, int]] | None = None,
    files: Mapping[str, Mapping[str, FileFigures]] | None = None,
    lifted: Collection[str] = (),
    besides: Sequence[Audit] = (),
) -> AuditSpec:
    """Derive the audits of a write from the dataset's contract.

    Args:
        files: Partition to landed file to its figures, which the rows of each file must have, and no rows of others.
    """
    conditions = (*contract.audits, *besides)
    lifted = {audit.name for audit in conditions if audit.failed is not Failed.FORBIDS}.intersection(lifted)
    warning = [audit for audit in conditions if audit.failed is Failed.WARNS or audit.name in lifted]
    own = {**contract.measures, **{f"{HELD}{audit.name}": _as_measure(audit) for audit in warning}}
    measures = {"rows": "count(1)", "accounted": contract.stands_for}
    measures.update({f"reason.{name}": sql for name, sql in contract.reasons.items()})
    measures.update(own)
    violations = {
        f"not_null.{column.name}": f"count_if(`{column.name}` is null)"
        for column in contract.columns
        if not column.nullable
    }
    violations.update({rule.name: f"count_if(not coalesce({rule.expression}, false))" for rule in contract.rules})
    audits = {audit.name: audit.expression for audit in conditions if audit not in warning}
    unique = {}
    if contract.key:
        key = ", ".join(f"`{column}`" for column in contract.key)
        unique["unique." + "+".join(contract.key)] = f"xxhash64({key})"
    figures: dict[str, dict[str, int]] = {
        partition: {"accounted": account.rows_in - sum(account.reasons.values())}
        for partition, account in accounts.items()
    }
    for partition, more in (expected or {}).items():
        figures.setdefault(partition, {}).update(more)
    return AuditSpec(
        partition_column=contract.partition_column,
        partitions=tuple(partitions),
        measures=measures,
        violations=violations,
        unique=unique,
        audits=audits,
        expected=figures,
        files=files or {},
        breakdowns=dict(contract.breakdowns),
        info={
            **info,
            "dataset": contract.dataset,
            "contract": contract.fingerprint,
            "partition_column": contract.partition_column,
            "executed": contract.executed,
            "accounts": {key: account.as_json() for key, account in accounts.items()},
            "reasons": sorted(contract.reasons),
            "own_measures": sorted(own),
            **({"lifted": found} if (found := sorted({audit.name for audit in warning} & set(lifted))) else {}),
        },
    )


def warnings(entry: Entry) -> list[str]:
    """List the audits that a publication failed and that did not refuse it."""
    return sorted(
        name.removeprefix(HELD) for name, held in entry.measures.items() if name.startswith(HELD) and held == 0
    )


def _as_measure(audit: Audit) -> str:
    # As a number: 1 held, 0 failed; a partition without rows has neither.
    return f"if(coalesce({audit.expression}, false), 1, 0)"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The measures of a batch and all its violations."""

    measures: Mapping[str, Mapping[str, Any]]
    breakdowns: Mapping[str, Sequence[Sequence[Any]]]
    violations: Sequence[Violation]


def judge(rows: DataFrame, spec: AuditSpec) -> Judgement:
    """Measure a frame and check its audits as the engine does, where no engine audits inside Delta's transaction.

    Args:
        rows: The rows about to be written; evaluated several times, so pass a checkpointed frame.
    """
    from pyspark.sql import functions as F

    repeated = {name: f"count(1) - count(distinct {key})" for name, key in spec.unique.items()}
    violations = {**spec.violations, **repeated}
    rules = {**spec.measures, **violations, **spec.audits}
    aggregates = [F.expr(sql).alias(name) for name, sql in rules.items()]
    column = spec.partition_column
    grouped = rows.groupBy(column).agg(*aggregates) if column else rows.agg(*aggregates)
    declared = spec.partitions if column else (WHOLE_TABLE,)
    measures: dict[str, dict[str, Any]] = {
        key: {name: 0 if sql.startswith(("count", "sum")) else None for name, sql in spec.measures.items()}
        for key in declared
    }
    wrong: list[Violation] = []
    for row in grouped.collect():
        partition = str(row[column]) if column else WHOLE_TABLE
        if partition not in measures:
            detail = "rows of a partition this write did not declare"
            wrong.append(Violation(rule="partition_is_declared", partition=partition, detail=detail, found=None))
        measures[partition] = {
            name: 0 if row[name] is None and sql.startswith(("count", "sum")) else _as_plain(row[name])
            for name, sql in spec.measures.items()
        }
        for name, sql in violations.items():
            if row[name]:
                wrong.append(Violation(rule=name, partition=partition, detail=sql, found=row[name]))
        for name, sql in spec.audits.items():
            if row[name] is not True:
                wrong.append(Violation(rule=name, partition=partition, detail=sql, found=row[name]))
    for partition, figures in spec.expected.items():
        for name, figure in figures.items():
            actual = measures.get(partition, {}).get(name)
            if actual != figure:
                detail = f"expected {figure}"
                wrong.append(Violation(rule=f"account.{name}", partition=partition, detail=detail, found=actual))
    wrong += _file_violations(rows, spec)
    breakdowns = {}
    for name, columns in spec.breakdowns.items():
        # Selected first, because Spark does not allow a grouping key to explode an array.
        keys = [F.expr(sql).alias(f"by{at}") for at, sql in enumerate((column, *columns) if column else columns)]
        selected = rows.select(*keys)
        breakdowns[name] = [list(row) for row in selected.groupBy(*selected.columns).count().collect()]
    return Judgement(measures=measures, breakdowns=breakdowns, violations=wrong)


def _file_violations(rows: DataFrame, spec: AuditSpec) -> list[Violation]:
    from pyspark.sql import functions as F

    if not spec.files:
        return []
    keys = [*([spec.partition_column] if spec.partition_column else []), _FILE]
    counted = rows.groupBy(*keys).agg(*[F.expr(sql) for sql in _FILE_FIGURES]).collect()
    found: dict[str, dict[str, FileFigures]] = {}
    for *partition, file, lines, size in counted:
        found.setdefault(str(partition[0]) if partition else WHOLE_TABLE, {})[file] = (lines, size)
    wrong = []
    for key, expected in spec.files.items():
        there = found.get(key, {})
        nothing = (0, 0)
        files = sorted(
            file for file in {*expected, *there} if there.get(file, nothing) != tuple(expected.get(file, nothing))
        )
        for file in files[:_NAMED]:
            lines, size = expected.get(file, nothing)
            detail = f"lines and bytes of {file}, of {len(files)} files that differ: expected {lines} and {size}"
            got = "{} and {}".format(*there.get(file, nothing))
            wrong.append(Violation(rule="account.file", partition=key, detail=detail, found=got))
    return wrong


def _as_plain(value: Any) -> Any:
    # Spark returns a timestamp as naive local time; the engine writes it as UTC.
    return value.astimezone(timezone.utc).isoformat() if isinstance(value, datetime) else value
