"""The audits of a write before its commit: specified from the contract, then judged on the rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE, Account, Entry
from blogdata.contract.schema import Failed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HELD = "held."
"""Prefix of the measure that says whether an audit held which does not refuse the publication."""
_GUARD = "audit:"
FROZEN = "frozen"
"""Guard that a person lifts to have a frozen period replaced."""
FileFigures = tuple[int, int]
"""Lines of a landed file, and their bytes, each with a line feed."""
FILE = "source_file"
_FILE_FIGURES = ("count(1)", "sum(length(raw) + 1)")
_NAMED = 5
"""Files of a partition that are named if they differ."""


def guard_of(dataset: str, audit: str) -> str:
    """Return the name of the guard that a person lifts to publish a dataset although an audit failed."""
    return f"{_GUARD}{dataset}:{audit}"


def lifted_audits(accepted: Collection[str], dataset: str) -> frozenset[str]:
    """Return the names of the audits of a dataset among the guards that a person has lifted."""
    prefix = guard_of(dataset, "")
    return frozenset(name.removeprefix(prefix) for name in accepted if name.startswith(prefix))


@dataclass(frozen=True)
class Violation:
    rule: str
    partition: str
    detail: str
    found: Any


@dataclass(frozen=True, kw_only=True)
class AuditSpec:
    partition_column: str | None
    partitions: tuple[str, ...]
    measures: Mapping[str, str]
    violations: Mapping[str, str]
    unique: Mapping[str, tuple[str, ...]]
    audits: Mapping[str, str]
    expected: Mapping[str, Mapping[str, int]]
    files: Mapping[str, Mapping[str, FileFigures]]
    breakdowns: Mapping[str, tuple[str, ...]]
    info: Mapping[str, Any]


def specify(
    contract: Contract,
    partitions: Sequence[str],
    accounts: Mapping[str, Account],
    info: Mapping[str, Any],
    *,
    expected: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    files: Mapping[str, Mapping[str, FileFigures]] = MappingProxyType({}),
    lifted: Collection[str] = (),
) -> AuditSpec:
    """Derive the audits of a write from the dataset's contract; the rows of landed files must have their figures."""
    lifted = {audit.name for audit in contract.audits if audit.failed is not Failed.FORBIDS}.intersection(lifted)
    warning = [audit for audit in contract.audits if audit.failed is Failed.WARNS or audit.name in lifted]
    # As a number: 1 held, 0 failed; a partition without rows has neither.
    held = {f"{HELD}{audit.name}": f"if(coalesce({audit.expression}, false), 1, 0)" for audit in warning}
    named = {**contract.measures, **held}
    reasons = {f"reason.{name}": sql for name, sql in contract.reasons.items()}
    measures = {"rows": "count(1)", "accounted": contract.stands_for, **reasons, **named}
    required = [column.name for column in contract.columns if not column.nullable]
    violations = {f"not_null.{name}": f"count_if(`{name}` is null)" for name in required}
    violations.update({rule.name: f"count_if(not coalesce({rule.expression}, false))" for rule in contract.rules})
    audits = {audit.name: audit.expression for audit in contract.audits if audit not in warning}
    unique = {"unique." + "+".join(contract.key): contract.key} if contract.key else {}
    figures: dict[str, dict[str, int]] = {
        partition: {"accounted": account.rows_in - sum(account.reasons.values())}
        for partition, account in accounts.items()
    }
    for partition, more in expected.items():
        figures.setdefault(partition, {}).update(more)
    return AuditSpec(
        partition_column=contract.partition_column,
        partitions=tuple(partitions),
        measures=measures,
        violations=violations,
        unique=unique,
        audits=audits,
        expected=figures,
        files=files,
        breakdowns=dict(contract.breakdowns),
        info={
            **info,
            "dataset": contract.dataset,
            "contract": contract.fingerprint,
            "partition_column": contract.partition_column,
            "executed": contract.executed,
            "accounts": {key: asdict(account) for key, account in accounts.items()},
            "reasons": sorted(contract.reasons),
            "own_measures": sorted(named),
            **({"lifted": raised} if (raised := sorted({audit.name for audit in warning} & set(lifted))) else {}),
        },
    )


def warnings(entry: Entry) -> list[str]:
    """List the audits that a publication failed and that did not refuse it."""
    return sorted(
        name.removeprefix(HELD) for name, held in entry.measures.items() if name.startswith(HELD) and held == 0
    )


@dataclass(frozen=True, kw_only=True)
class Judgement:
    measures: Mapping[str, Mapping[str, Any]]
    breakdowns: Mapping[str, Sequence[Sequence[Any]]]
    violations: Sequence[Violation]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What was counted of a batch, before it is judged."""

    figures: Mapping[str, Mapping[str, Any]]
    """Partition to the measures, violations and audits of its rows."""
    repeated: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rule to partition to its rows that are not the first with their key."""
    files: Mapping[str, Mapping[str, FileFigures]] = field(default_factory=dict)
    """Partition to landed file to its lines and bytes."""
    breakdowns: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    """Name to rows: the partition if there is one, the values, and how many rows have them."""
    undeclared: Sequence[str] = ()
    """Partitions of rows that are counted with those of another one."""


def weigh(spec: AuditSpec, counted: Counted) -> Judgement:
    declared = spec.partitions if spec.partition_column else (WHOLE_TABLE,)
    measures = {key: _measures(spec, {}) for key in declared}
    undeclared = [*(partition for partition in counted.figures if partition not in measures), *counted.undeclared]
    detail = "rows of a partition this write did not declare"
    wrong = [Violation("partition_is_declared", partition, detail, None) for partition in undeclared]
    for partition, figures in counted.figures.items():
        measures[partition] = _measures(spec, figures)
        broken = {name: sql for name, sql in spec.violations.items() if figures[name]}
        broken |= {name: sql for name, sql in spec.audits.items() if figures[name] is not True}
        wrong += [Violation(name, partition, sql, figures[name]) for name, sql in broken.items()]
    for name, by_partition in counted.repeated.items():
        detail = f"rows that are not the first of {', '.join(spec.unique[name])}"
        wrong += [Violation(name, partition, detail, rows) for partition, rows in by_partition.items() if rows]
    for partition, expected in spec.expected.items():
        for name, figure in expected.items():
            actual = measures.get(partition, {}).get(name)
            if actual != figure:
                wrong.append(Violation(f"account.{name}", partition, f"expected {figure}", actual))
    wrong += _file_violations(spec, counted.files)
    return Judgement(measures=measures, breakdowns=counted.breakdowns, violations=wrong)


def _measures(spec: AuditSpec, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measures of a partition; without rows counts and sums are zero, and all others null."""
    counts = {name for name, sql in spec.measures.items() if sql.lstrip("-").startswith(("count", "sum"))}
    measures = {name: as_plain(figures.get(name)) for name in spec.measures}
    return {name: 0 if value is None and name in counts else value for name, value in measures.items()}


def aggregates(spec: AuditSpec) -> dict[str, str]:
    return {**spec.measures, **spec.violations, **spec.audits}


def count_figures(rows: DataFrame, spec: AuditSpec) -> dict[str, dict[str, Any]]:
    """Compute all aggregates of each partition, in one query."""
    from pyspark.sql import functions as F

    names, column = aggregates(spec), spec.partition_column
    columns = [F.expr(sql).alias(name) for name, sql in names.items()]
    counted = (rows.groupBy(column) if column else rows).agg(*columns).collect()
    return {str(row[column]) if column else WHOLE_TABLE: {name: row[name] for name in names} for row in counted}


def count_repeated(rows: DataFrame, spec: AuditSpec) -> dict[str, dict[str, int]]:
    """Count the rows of each partition that are not the first with their key; by itself it takes less memory."""
    from pyspark.sql import functions as F

    partition = [spec.partition_column] if spec.partition_column else []
    counts: dict[str, dict[str, int]] = {}
    for name, columns in spec.unique.items():
        key = F.xxhash64(*[F.col(f"`{column}`") for column in columns]).alias("key")
        counted = rows.groupBy(*partition, key).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
        repeated = counted.groupBy(*partition).agg(F.sum(F.col("rows") - 1)).collect()
        counts[name] = {str(row[0]) if partition else WHOLE_TABLE: int(row[-1] or 0) for row in repeated}
    return counts


def count_breakdown(rows: DataFrame, spec: AuditSpec, columns: Sequence[str]) -> list[list[Any]]:
    from pyspark.sql import functions as F

    column = spec.partition_column
    # Selected first, because Spark does not allow a grouping key to explode an array.
    keys = [F.expr(sql).alias(f"by{at}") for at, sql in enumerate((column, *columns) if column else columns)]
    selected = rows.select(*keys)
    counted = selected.groupBy(*selected.columns).count().collect()
    return [[as_plain(cell) for cell in row] for row in counted]


def count_files(rows: DataFrame, spec: AuditSpec) -> dict[str, dict[str, FileFigures]]:
    from pyspark.sql import functions as F

    if not spec.files:
        return {}
    keys = [*([spec.partition_column] if spec.partition_column else []), FILE]
    counted = rows.groupBy(*keys).agg(*[F.expr(sql) for sql in _FILE_FIGURES]).collect()
    figures: dict[str, dict[str, FileFigures]] = {}
    for *partition, file, lines, size in counted:
        figures.setdefault(str(partition[0]) if partition else WHOLE_TABLE, {})[file] = (lines, size)
    return figures


def _file_violations(spec: AuditSpec, counted: Mapping[str, Mapping[str, FileFigures]]) -> list[Violation]:
    wrong = []
    for key, expected in spec.files.items():
        actual = counted.get(key, {})
        pairs = {file: (actual.get(file, (0, 0)), tuple(expected.get(file, (0, 0)))) for file in {*expected, *actual}}
        files = sorted(file for file, (figures, wanted) in pairs.items() if figures != wanted)
        for file in files[:_NAMED]:
            figures, wanted = ("{} and {}".format(*pair) for pair in pairs[file])
            detail = f"lines and bytes of {file}, of {len(files)} files that differ: expected {wanted}"
            wrong.append(Violation("account.file", key, detail, figures))
    return wrong


def as_plain(value: Any) -> Any:
    if isinstance(value, datetime):
        # Spark returns a timestamp as naive local time.
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
