from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from blogdata.cli import schema_command
from blogdata.cli.schema_command import app
from blogdata.contract.column_types import parse_fields
from blogdata.contract.contract import Contract
from blogdata.contract.schema import Column, Migration
from blogdata.contract.writes import Copy, Merge
from blogdata.errors import PlatformError
from blogdata.patterns.quality import schema_compatibility_enforcer as enforcer
from blogdata.table.incompatibilities import hold_member, hold_table, incompatibilities
from quality.contracts import EVERY, RELEASED
from toy import CONTRACT

TODAY = date(2026, 11, 25)


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        ("a INT", "a INT, b INT", False),
        ("a STRING", "a VARCHAR(10)", False),
        ("a INT", "a INT, b INT NOT NULL", True),
        ("a INT, b INT", "a INT", True),
        ("a INT", "a INT NOT NULL", True),
        ("a INT NOT NULL", "a INT", True),
        ("a INT", "a BIGINT", True),
        ("a DECIMAL(10, 2)", "a DECIMAL(12, 2)", True),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: BIGINT>>", True),
    ],
)
def test_a_change_that_breaks_a_query_or_a_row_is_refused(before: str, after: str, is_refused: bool) -> None:
    assert bool(incompatibilities(parse_fields(before), parse_fields(after))) == is_refused


@pytest.fixture
def clicks(tmp_path: Path) -> DeltaTable:
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
    with pytest.raises(PlatformError, match=r"3 place\(s\)") as refused:
        hold_table(clicks, with_column(replace(CONTRACT, columns=columns), nullable=False))
    faults = ("click: changed its type from bigint to string", "stands_for: was removed", "host: was added")
    assert all(fault in refused.value.what for fault in faults)


def test_only_a_replaced_table_retires_a_column(clicks: DeltaTable) -> None:
    removal = Migration(old="page", since=TODAY, grace=timedelta(days=30))
    retiring = replace(CONTRACT, columns=CONTRACT.columns[:3], migrations=(removal,))
    hold_table(clicks, retiring)
    with pytest.raises(PlatformError, match="page: was removed"):
        hold_table(clicks, replace(retiring, write=Merge()))
    with pytest.raises(PlatformError, match="page: was removed"):
        hold_member({"page": "STRING"}, replace(retiring, write=Copy()), where="a copy")


def test_the_contracts_are_compatible_with_what_was_released() -> None:
    ran = CliRunner().invoke(app, ["check"])
    assert ran.exit_code == 0, ran.output


def test_a_breaking_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "released.json"
    file.write_bytes(RELEASED.read_bytes())
    stats = EVERY["gold.page_stats"]
    narrower = replace(stats, columns=tuple(column for column in stats.columns if column.name != "share"))
    monkeypatch.setattr(schema_command, "EVERY", {**EVERY, stats.dataset: narrower})
    monkeypatch.setattr(schema_command, "RELEASED", file)
    ran = CliRunner().invoke(app, ["check"])
    assert ran.exit_code == 1
    assert "share: was removed" in ran.output
    assert isinstance(CliRunner().invoke(app, ["release"]).exception, PlatformError)
    assert file.read_bytes() == RELEASED.read_bytes()

    forced = CliRunner().invoke(app, ["release", "--breaking", stats.dataset])
    assert (forced.exit_code, forced.output) == (0, f"released: {stats.dataset}\n")
    assert CliRunner().invoke(app, ["check"]).exit_code == 0


def test_a_column_goes_only_after_its_announced_grace() -> None:
    retiring = replace(CONTRACT, migrations=(Migration(old="page", since=TODAY, grace=timedelta(days=30)),))
    gone = replace(retiring, columns=CONTRACT.columns[:3])

    def breaks(days: int, released: Contract = retiring) -> list[str]:
        faults = enforcer.breaks(enforcer.release_of(released), gone, TODAY + timedelta(days=days))
        return [fault.column for fault in faults]

    assert breaks(29) == ["page"]
    assert breaks(30) == []
    # Announced in the same release that removes it: no consumer could know.
    assert breaks(30, CONTRACT) == ["page"]
    assert breaks(31, gone) == []
