"""The contract in the vocabulary of Great Expectations: suites are derived from contracts.

Published rows are checked against the promises that each write is audited for, by independent code: it finds what an
audit misses. A result has counts, and of an exception the first line without quoted values: no value of a row.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.contract.column_types import DataType, Struct, parse
from blogdata.contract.contract import Contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Counts only: the default keeps examples of unexpected values, which may be addresses and logins.
RESULT_FORMAT = {"result_format": "SUMMARY", "partial_unexpected_count": 0}
_SPARK_TYPES = {
    "BIGINT": "LongType",
    "INT": "IntegerType",
    "SMALLINT": "ShortType",
    "TIMESTAMP_NTZ": "TimestampNTZType",
    "TINYINT": "ByteType",
}


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """The result of one promise: it holds, is broken, or, with an error, could not be evaluated."""

    rule: str
    description: str
    passed: bool
    violations: int | None = None
    error: str | None = None

    @property
    def is_broken(self) -> bool:
        return not self.passed and self.error is None

    def __str__(self) -> str:
        return self.rule if self.violations is None else f"{self.rule} ({self.violations})"


class Project:
    """A Great Expectations project in memory, which sends nothing anywhere."""

    def __init__(self) -> None:
        gx = _library()
        self._context: Any = gx.get_context(mode="ephemeral")
        self._context.enable_analytics(False)
        self._context.variables.progress_bars = {"globally": False}

    def validate(self, frame: DataFrame, contract: Contract) -> list[RuleResult]:
        """Validate published rows, whole partitions, against the suite of their contract."""
        gx = _library()
        wanted = suite(contract)
        with _quiet(), _in_session_of(frame):
            # A new source each time: a source keeps its first session. Not persisted: it would be cached on the server.
            source = self._context.data_sources.add_spark(contract.dataset, persist=False)
            batch = source.add_dataframe_asset("published").add_batch_definition_whole_dataframe("whole")
            definition = self._context.validation_definitions.add(
                gx.ValidationDefinition(name=contract.dataset, data=batch, suite=self._context.suites.add(wanted))
            )
            outcome = definition.run(
                batch_parameters={"dataframe": frame},
                result_format=RESULT_FORMAT,
                run_id=gx.RunIdentifier(run_name=contract.dataset, run_time=datetime.now(timezone.utc)),
            )
        results = {result.rule: result for result in map(_result, outcome.results)}
        if any(result.error is not None for result in results.values()):
            # Raises if the server is gone: that is a fault of the run, not a result of the validation.
            frame.sparkSession.sql("SELECT 1").collect()
        # A promise without an answer is an error, not a promise kept.
        return [results[expectation.meta["rule"]] for expectation in wanted.expectations]


def suite(contract: Contract) -> Any:
    gx = _library()
    # Great Expectations counts each field of a struct as a column too.
    names = [name for column in contract.columns for name in _names(column.name, parse(column.type))]
    # As a set: columns added later come last in the table, whatever their place in the contract.
    promises = [
        _expect("ExpectTableColumnsToMatchSet", "columns", "The columns are those of the contract", column_set=names)
    ]
    for column in contract.columns:
        kind, rule = _spark_type(column.type), f"type.{column.name}"
        says = f"{column.name} is {column.type}"
        promises.append(_expect("ExpectColumnValuesToBeOfType", rule, says, column=column.name, type_=kind))
        if not column.nullable:
            rule = f"not_null.{column.name}"
            promises.append(_expect("ExpectColumnValuesToNotBeNull", rule, column.description, column=column.name))
    if contract.key:
        promises.append(_unique(contract))
    for rule_ in contract.rules:
        condition = _sql(f"not coalesce({rule_.expression}, false)")
        promises.append(_query(rule_.name, rule_.description, f"{{batch}} WHERE {condition}"))
    by = f" GROUP BY `{contract.partitioning.column}`" if contract.partitioning else ""
    for audit in contract.audits:
        held = _sql(f"SELECT {audit.expression} AS held FROM ") + "{batch}" + by
        promises.append(_query(audit.name, audit.description, f"({held}) WHERE NOT coalesce(held, false)"))
    return gx.ExpectationSuite(name=contract.dataset, expectations=promises)


def _unique(contract: Contract) -> Any:
    name, description = "unique." + "+".join(contract.key), "The key identifies a row within its partition"
    if len(contract.identity) == 1:
        return _expect("ExpectColumnValuesToBeUnique", name, description, column=contract.identity[0])
    return _expect("ExpectCompoundColumnsToBeUnique", name, description, column_list=list(contract.identity))


def _query(rule: str, description: str, rows: str) -> Any:
    query = f"SELECT 1 AS broken FROM {rows}"
    return _expect("UnexpectedRowsExpectation", rule, description, unexpected_rows_query=query)


def _expect(kind: str, rule: str, description: str, **arguments: Any) -> Any:
    named = {"description": f"{rule}: {description}", "meta": {"rule": rule}}
    return getattr(_library().expectations, kind)(**arguments, **named)


def _sql(expression: str) -> str:
    # Great Expectations formats the query, so a brace of the rule itself must be doubled.
    return expression.replace("{", "{{").replace("}", "}}")


def _names(name: str, type_: DataType) -> Iterator[str]:
    yield name
    if isinstance(type_, Struct):
        for field in type_.fields:
            yield from _names(f"{name}.{field.name}", field.type)


def _spark_type(ddl: str) -> str:
    name = ddl.upper().split("<")[0].split("(")[0].strip()
    return _SPARK_TYPES.get(name, f"{name.capitalize()}Type")


def _result(outcome: Any) -> RuleResult:
    configuration, result = outcome.expectation_config, outcome.result or {}
    error = _error(outcome.exception_info or {})
    violations = result.get("unexpected_count")
    if violations is None and configuration.type == "unexpected_rows_expectation":
        violations = result.get("observed_value")
    return RuleResult(
        rule=configuration.meta["rule"],
        description=configuration.description.split(": ", 1)[1],
        passed=bool(outcome.success) and error is None,
        violations=None if violations is None or error is not None else int(violations),
        error=error,
    )


def _error(info: dict[str, Any]) -> str | None:
    # One exception, or one for each metric that the expectation needs.
    raised = [item for item in (info, *info.values()) if isinstance(item, dict) and item.get("raised_exception")]
    if not raised:
        return None
    # Spark's messages continue with the query plan and the server's stack, and quote values in single quotes.
    lines = str(raised[0]["exception_message"]).strip().splitlines() or ["an exception without a message"]
    return re.sub(r"'[^']*'", "'\N{HORIZONTAL ELLIPSIS}'", lines[0])


@contextmanager
def _in_session_of(frame: DataFrame) -> Iterator[None]:
    """Make Great Expectations use the session of a frame: without an active one it starts a classic Spark."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    active: Any = ConnectSession._active_session
    before = getattr(active, "session", None)
    active.session = frame.sparkSession
    try:
        yield
    finally:
        active.session = before


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _library() -> Any:
    # It imports modules that newer Pythons deprecate; the import takes seconds.
    with _quiet():
        import great_expectations

    return great_expectations
