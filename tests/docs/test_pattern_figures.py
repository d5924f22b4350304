"""Figures of the patterns: every query resolves against the tables, and the declared figures are measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from blogdata.cli.sql_command import TABLE, VERSIONS
from blogdata.evidence.event import SCHEMA
from blogdata.evidence.events import EVENTS
from blogdata.patterns.data_value.metadata_decorator import CONTEXT, IS_PUBLICATION, PUBLICATIONS
from blogdata.patterns.error_management.checkpointer import OFFSETS_DDL, STREAM_OFFSETS
from blogdata.patterns.storage.vertical_partitioner import WHOLE
from blogdata.publish.schema import Column
from docs.pages import ROOT
from quality.contracts import EVERY
from tools.pattern_card import module_name
from tools.pattern_figures import FIGURES, Measured
from tools.sample_deployment import log_lines

MOST = 4
DECLARED = [(pattern, label, query) for pattern, questions in FIGURES.items() for label, query in questions]
QUERIES = [query for _, _, query in DECLARED]
EXECUTIONS_DDL = "dataset STRING, execution STRING, table_version BIGINT, applied BOOLEAN"
WHOLE_VIEWS = {
    f"{name}{WHOLE}": (*contract.columns, *contract.wide.columns) for name, contract in EVERY.items() if contract.wide
}
TYPES = {"timestamp[us, tz=UTC]": "TIMESTAMP", "int64": "BIGINT", "string": "STRING", "double": "DOUBLE"}


def test_the_measured_figures_are_those_declared() -> None:
    measured = Measured.read(ROOT)
    found = [(figure.pattern, figure.label, figure.query) for figure in measured.figures]
    assert found == DECLARED, "run make docs-figures"
    assert set(measured.how) == {"command", "sample", "seed", "version"}


def test_only_working_patterns_have_a_few_figures() -> None:
    modules = {file.stem for file in (ROOT / "platform" / "blogdata" / "patterns").rglob("*.py")}
    assert {module_name(pattern) for pattern in FIGURES} <= modules
    for pattern, questions in FIGURES.items():
        labels = [label for label, _ in questions]
        assert 1 <= len(set(labels)) == len(labels) <= MOST, pattern


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_tables_that_exist(query: str) -> None:
    names = {match.group(0) for match in TABLE.finditer(query)}
    assert names
    assert names <= {*EVERY, *WHOLE_VIEWS, EVENTS, PUBLICATIONS, VERSIONS, STREAM_OFFSETS}


def test_every_query_resolves_to_one_column(session: Any) -> None:
    columns = {
        EVENTS: ", ".join(f"{one.name} {_type(one)}" for one in SCHEMA),
        STREAM_OFFSETS: OFFSETS_DDL,
        VERSIONS: EXECUTIONS_DDL,
        **{name: _ddl(contract.columns) for name, contract in EVERY.items()},
        **{name: _ddl(columns) for name, columns in WHOLE_VIEWS.items()},
    }
    for name, ddl in columns.items():
        session.createDataFrame([], ddl).createOrReplaceTempView(name.replace(".", "__"))
    context = [f"{expression} AS {name}" for name, expression in CONTEXT.items()]
    events = session.table(EVENTS.replace(".", "__"))
    events.where(IS_PUBLICATION).selectExpr(*context).createOrReplaceTempView(PUBLICATIONS.replace(".", "__"))
    for query in QUERIES:
        rewritten = TABLE.sub(lambda match: match.group(0).replace(".", "__"), query)
        # Spark analyses the query without running it.
        assert len(session.sql(rewritten).columns) == 1, query


def test_a_seed_repeats_the_samples_access_log() -> None:
    assert list(log_lines(7)) == list(log_lines(7))
    assert list(log_lines(7)) != list(log_lines(8))


def _ddl(columns: Iterable[Column]) -> str:
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)


def _type(column: pa.Field) -> str:
    return TYPES[str(column.type)]
