"""The list of seeded defects is one that can be run: each changes what is there, and names tests that are there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants.mutant import Mutant
from mutants.seeded import MUTANTS

ROOT = Path(__file__).parent.parent.parent
LEAST = 25


def test_there_are_enough_of_them_and_each_has_its_name() -> None:
    assert len(MUTANTS) >= LEAST
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_changes_code_that_is_there_and_leaves_it_readable(mutant: Mutant) -> None:
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
        assert f"def {name.partition('[')[0] or 'test_'}" in (ROOT / file).read_text(encoding="utf-8")
