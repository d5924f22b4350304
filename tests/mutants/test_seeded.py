"""The list of seeded defects can be run: each changes existing code, and names existing tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from blogdata.services import engine, jars, java
from blogdata.services.config import Settings
from mutants.__main__ import failed_tests
from mutants.mutant import ENGINE, Mutant
from mutants.seeded import MUTANTS

ROOT = Path(__file__).parent.parent.parent
LEAST = 25
PACKAGE = "io.blogdata.engine"
TESTS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError

def test_that_fails():
    assert False

def test_that_is_not_tried(broken):
    pass
"""


def test_there_are_enough_uniquely_named_defects() -> None:
    assert len(MUTANTS) >= LEAST
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_changes_existing_code_that_still_parses(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    changed = text.replace(mutant.old, mutant.new)
    assert changed != text
    if mutant.file.endswith(".py"):
        ast.parse(changed)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_names_tests_that_are_there(mutant: Mutant) -> None:
    for test in mutant.noticed_by:
        file, _, name = test.partition("::")
        wanted = f"def {name.partition('[')[0]}(" if name else "def test_"
        assert wanted in (ROOT / file).read_text(encoding="utf-8")


def test_tests_that_notice_defects_run_in_the_suite() -> None:
    """The pages name these tests, so they must run in the regular suite and not only in a campaign."""
    named = {test.partition("[")[0] for mutant in MUTANTS for test in mutant.noticed_by}
    assert sorted(test for test in named if campaign(*test.split("::"))) == []
    assert campaign("tests/lineage/test_plan.py", "test_hours_run_out_of_order_give_equal_tables")


def campaign(file: str, name: str = "") -> bool:
    """Tell whether a test, or every test of a file, runs in campaigns only."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    whole = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    marks = [
        [ast.unparse(mark) for mark in node.decorator_list]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(name or "test_")
    ]
    assert marks, f"{file} has no {name}"
    mark = "pytest.mark.campaign"
    return any(mark in value for value in whole) or all(mark in found for found in marks)


def test_defects_of_the_engine_compile(settings: Settings, tmp_path: Path) -> None:
    # Each in a package of its own, so that the compiler is started once.
    sources = tmp_path / "engine"
    for number, mutant in enumerate(mutant for mutant in MUTANTS if mutant.file.startswith(ENGINE)):
        folder = sources / mutant.name.replace(" ", "_")
        folder.mkdir(parents=True)
        for file in (ROOT / ENGINE).glob("*.java"):
            text = file.read_text(encoding="utf-8")
            if file == ROOT / mutant.file:
                text = text.replace(mutant.old, mutant.new)
            (folder / file.name).write_text(text.replace(PACKAGE, f"{PACKAGE}{number}"), encoding="utf-8")
    runtime = java.find(settings)
    engine._build(sources, jars.download_missing(settings, runtime), runtime, tmp_path, tmp_path / "engine.jar")


@pytest.mark.parametrize(
    ("chosen", "failed"),
    [("test_that_fails", ["test_some::test_that_fails"]), ("test_that_is_not_tried", [])],
)
def test_only_a_failing_test_notices_a_defect(tmp_path: Path, chosen: str, failed: list[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    assert failed_tests(tmp_path, [f"test_some.py::{chosen}"])[0] == failed
