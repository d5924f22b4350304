"""Permitted schema changes by compatibility mode: against tables, and against released versions."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from blogdata.cli import schema_command
from blogdata.cli.schema_command import app
from blogdata.patterns.quality import schema_releases
from blogdata.patterns.quality.schema_releases import Release
from blogdata.publish.column_types import Field, parse, parse_fields
from blogdata.publish.compatibility import Compatibility, Remove
from blogdata.publish.contract import Contract
from blogdata.publish.incompatibilities import (
    IncompatibleSchema,
    hold_member,
    hold_table,
    incompatibilities,
    incompatible_with,
)
from blogdata.publish.schema import Column
from blogdata.publish.writes import Copy, Merge
from docs.pages import ROOT
from quality.contracts import EVERY, RELEASED
from toy import CONTRACT

MODES = [Compatibility.NONE, Compatibility.BACKWARD, Compatibility.FORWARD, Compatibility.FULL]
B, F = frozenset({Compatibility.BACKWARD, Compatibility.FULL}), frozenset({Compatibility.FORWARD, Compatibility.FULL})
TODAY = date(2026, 11, 25)


@pytest.mark.parametrize(
    ("before", "after", "refused_in"),
    [
        ("a INT", "a INT", frozenset()),
        ("a INT", "a INT, b INT", frozenset()),
        ("a INT", "a INT, b INT NOT NULL", B),
        ("a INT, b INT", "a INT", F),
        ("a INT, b INT NOT NULL", "a INT", F),
        ("a INT", "a INT NOT NULL", B),
        ("a INT NOT NULL", "a INT", F),
        ("a INT", "a BIGINT", F),
        ("a BIGINT", "a INT", B),
        ("a SMALLINT", "a DOUBLE", F),
        ("a BIGINT", "a DOUBLE", B | F),
        ("a FLOAT", "a DOUBLE", F),
        ("a DATE", "a TIMESTAMP_NTZ", F),
        ("a DATE", "a TIMESTAMP", B | F),
        ("a STRING", "a TIMESTAMP", B | F),
        ("a STRING", "a VARCHAR(10)", frozenset()),
        ("a DECIMAL(10, 2)", "a DECIMAL(12, 2)", F),
        ("a DECIMAL(10, 2)", "a DECIMAL(10, 3)", B | F),
        ("a INT", "a DECIMAL(10, 0)", F),
        ("a BIGINT", "a DECIMAL(19, 0)", B | F),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT, y: INT>", frozenset()),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT, y: INT NOT NULL>", B),
        ("a STRUCT<x: INT, y: INT>", "a STRUCT<x: INT>", F),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: BIGINT>>", F),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>", F),
        ("a MAP<INT, INT>", "a MAP<STRING, INT>", B | F),
        ("a ARRAY<INT>", "a INT", B | F),
        ("a INT", "b INT", F),
    ],
)
def test_a_change_is_refused_in_its_modes(before: str, after: str, refused_in: frozenset[Compatibility]) -> None:
    found = {mode for mode in MODES if incompatibilities(parse_fields(before), parse_fields(after), mode)}
    assert found == refused_in


def test_every_incompatibility_is_listed_at_once() -> None:
    before = parse_fields("id INT, at STRUCT<x: INT, y: ARRAY<STRUCT<z: DATE>>>, gone STRING")
    after = parse_fields("id STRING, at STRUCT<x: INT NOT NULL, y: ARRAY<STRUCT<z: INT>>>, came STRING NOT NULL")
    found = incompatibilities(before, after, Compatibility.FULL)
    assert {(one.column, one.what) for one in found} == {
        ("id", "changed its type from int to string"),
        ("at.x", "may no longer be null"),
        ("at.y[].z", "changed its type from date to int"),
        ("gone", "was removed"),
        ("came", "was added and may not be null"),
    }
    assert all(one.breaks and one.remedy for one in found)


def test_a_default_makes_a_required_column_compatible() -> None:
    before, default = (Field("a", parse("INT")),), Field("b", parse("INT"), nullable=False, filled=True)
    assert incompatibilities(before, (*before, default), Compatibility.FULL) == []
    without = replace(default, filled=False)
    versions = released_as(before, (*before, default))
    # Avro's own example for transitive modes: the default is removed, and the newest version reads only the last one.
    assert incompatible_with(versions, (*before, without), Compatibility.BACKWARD) == []
    (found,) = incompatible_with(versions, (*before, without), Compatibility.BACKWARD_TRANSITIVE)
    assert (found.column, found.version) == ("b", 1)


def released_as(*schemas: tuple[Field, ...]) -> dict[int, tuple[Field, ...]]:
    found = {}
    for number, fields in enumerate(schemas, 1):
        texts = {
            field.name: f"{field.type}{'' if field.nullable else ' NOT NULL'}{' FILLED' if field.filled else ''}"
            for field in fields
        }
        found[number] = Release(number=number, released_on=TODAY, columns=texts, retires={}).fields
    return found


TYPES = st.recursive(
    st.sampled_from("tinyint int bigint float double date timestamp_ntz string decimal(10,2) decimal(12,2)".split()),
    lambda inner: st.one_of(
        inner.map(lambda one: f"array<{one}>"),
        inner.map(lambda one: f"map<string,{one}>"),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda many: f"struct<{','.join(f'f{at}:{one}' for at, one in enumerate(many))}>"
        ),
    ),
    max_leaves=4,
)
COLUMNS = st.builds(Field, st.sampled_from("abcd"), TYPES.map(parse), st.booleans(), st.booleans())
SCHEMAS = st.lists(COLUMNS, unique_by=lambda field: field.name, max_size=4).map(tuple)


@given(SCHEMAS, SCHEMAS)
def test_full_is_backward_and_forward(before: tuple[Field, ...], after: tuple[Field, ...]) -> None:
    backward, forward, full = (
        {one.column for one in incompatibilities(before, after, mode)}
        for mode in (Compatibility.BACKWARD, Compatibility.FORWARD, Compatibility.FULL)
    )
    assert full == backward | forward


@given(st.lists(SCHEMAS, min_size=3, max_size=3))
def test_compatible_steps_make_a_compatible_way(schemas: list[tuple[Field, ...]]) -> None:
    # Random schemas are rarely compatible: each version copies from the last one what is missing or different.
    chain = [schemas[0]]
    for schema in schemas[1:]:
        kept = {field.name: field for field in chain[-1]}
        added = [field for field in schema if field.name not in kept and (field.nullable or field.filled)]
        chain.append((*chain[-1], *added))
    first, second, third = chain
    assert incompatibilities(first, second, Compatibility.FULL) == []
    assert incompatibilities(second, third, Compatibility.FULL) == []
    assert incompatibilities(first, third, Compatibility.FULL) == []


@given(st.lists(SCHEMAS, min_size=1, max_size=4), SCHEMAS, st.sampled_from(list(Compatibility)))
def test_transitive_means_compatible_with_every_version(
    released: list[tuple[Field, ...]], after: tuple[Field, ...], mode: Compatibility
) -> None:
    versions = released_as(*released)
    judged = released if mode.transitive else released[-1:]
    fine = all(incompatibilities(fields, after, mode) == [] for fields in judged)
    assert (incompatible_with(versions, after, mode) == []) == fine


@pytest.fixture
def clicks(tmp_path: Path) -> DeltaTable:
    """Make a table of :data:`CONTRACT`, written without Spark."""
    row = {"hour": ["2026-01-05T00"], "click": [1], "stands_for": [1], "page": ["/"]}
    write_deltalake(str(tmp_path), pa.table(row), partition_by=["hour"])
    return DeltaTable(str(tmp_path))


def with_column(contract: Contract, **more: object) -> Contract:
    added = Column(**{"name": "host", "type": "STRING", "description": "Host", **more})  # type: ignore[arg-type]
    return replace(contract, columns=(*contract.columns, added))


def test_a_table_refuses_all_faults_before_a_write(clicks: DeltaTable) -> None:
    hold_table(clicks, CONTRACT)
    hold_table(clicks, with_column(CONTRACT))
    hold_table(clicks, with_column(CONTRACT, nullable=False, default="'none'"))
    columns = (*CONTRACT.columns[:1], replace(CONTRACT.columns[1], type="STRING"), CONTRACT.columns[3])
    with pytest.raises(IncompatibleSchema) as refused:
        hold_table(clicks, with_column(replace(CONTRACT, columns=columns), nullable=False))
    for fault in (
        "click: changed its type from bigint to string",
        "stands_for: was removed",
        "host: was added and may not be null",
    ):
        assert fault in refused.value.what
    assert "3 place(s)" in refused.value.what


def test_no_mode_allows_changes_that_the_table_cannot_make(clicks: DeltaTable) -> None:
    anything = replace(CONTRACT, compatibility=Compatibility.NONE)
    hold_table(clicks, with_column(anything, nullable=False))
    with pytest.raises(IncompatibleSchema, match="page: was removed") as refused:
        hold_table(clicks, replace(anything, columns=anything.columns[:3]))
    assert "if this code is older than the table, run the newer code again" in refused.value.next_step


def test_only_a_replaced_table_retires_a_column(clicks: DeltaTable) -> None:
    removal = Remove(old="page", since=TODAY, grace=timedelta(days=30))
    retiring = replace(CONTRACT, columns=CONTRACT.columns[:3], migrations=(removal,))
    hold_table(clicks, retiring)
    with pytest.raises(IncompatibleSchema, match="page: was removed"):
        hold_table(clicks, replace(retiring, write=Merge()))
    with pytest.raises(IncompatibleSchema, match="page: was removed"):
        hold_member({"page": "STRING"}, replace(retiring, write=Copy()), where="a copy")


def test_the_contracts_are_compatible_with_their_releases() -> None:
    started = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (started.returncode, started.stderr) == (0, ""), started.stdout


CHECK = """
import sys
from blogdata.cli.main import app
try:
    app(["schema", "check"])
except SystemExit as ended:
    assert not {"pyspark", "dagster"} & {name.partition(".")[0] for name in sys.modules}
    raise
"""


def test_a_breaking_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "released.json"
    file.write_bytes(RELEASED.read_bytes())
    stats = EVERY["gold.page_stats"]
    narrower = replace(stats, columns=tuple(column for column in stats.columns if column.name != "share"))
    monkeypatch.setattr(schema_command, "EVERY", {**EVERY, stats.dataset: narrower})
    ran = CliRunner().invoke(app, ["check", "--file", str(file)])
    assert ran.exit_code == 1
    assert "share: was removed" in ran.output
    refused = CliRunner().invoke(app, ["release", "--file", str(file)])
    assert isinstance(refused.exception, IncompatibleSchema)
    assert file.read_bytes() == RELEASED.read_bytes()

    told = CliRunner().invoke(app, ["check", "--file", str(file), "--json"])
    assert [one["dataset"] for one in json.loads(told.stdout) if one["breaks"]] == [stats.dataset]
    forced = CliRunner().invoke(app, ["release", "--breaking", stats.dataset, "--file", str(file)])
    assert (forced.exit_code, forced.output) == (0, f"{stats.dataset}: version 2\n")
    assert CliRunner().invoke(app, ["check", "--file", str(file)]).exit_code == 0


def test_a_column_goes_only_after_its_announced_grace() -> None:
    retiring = replace(CONTRACT, migrations=(Remove(old="page", since=TODAY, grace=timedelta(days=30)),))
    gone = replace(retiring, columns=CONTRACT.columns[:3])
    released, added = schema_releases.add({}, [retiring], TODAY)
    assert added == [CONTRACT.dataset]

    def breaks(days: int, releases: schema_releases.Releases = released) -> list[str]:
        (found,) = schema_releases.compare(releases, [gone], TODAY + timedelta(days=days))
        return [one.column for one in found.breaks]

    assert breaks(29) == ["page"]
    assert breaks(30) == []
    # Announced in the same release that removes it: no consumer could know.
    assert breaks(30, schema_releases.add({}, [CONTRACT], TODAY)[0]) == ["page"]
    after, _ = schema_releases.add(released, [gone], TODAY + timedelta(days=30))
    assert breaks(31, after) == []
