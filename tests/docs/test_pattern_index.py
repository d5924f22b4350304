"""Every pattern marked as working has its module, its user, its caller and its test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.orchestration.names import slug
from docs.pages import PROJECT
from quality.contracts import EVERY
from tools import pattern_card, pattern_index
from tools.call_graph import Definitions
from tools.pattern_card import PARTS
from tools.pattern_index import EVERY_DATASET, Pattern
from tools.tried_only import Options

CARD = '''"""Full Loader: whole.

Problem: two lines
of one paragraph.

How it works: :func:`guard` and ``Engine.FAST`` of :mod:`.lake`.

Another paragraph.

Source: "Data Engineering Design Patterns", ch. 2.
"""
'''


@pytest.fixture(scope="module")
def code() -> Definitions:
    return PROJECT.code


@pytest.fixture(scope="module")
def index() -> dict[str, Pattern]:
    return {pattern.name: pattern for pattern in PROJECT.patterns}


def test_every_pattern_has_a_user_a_caller_and_a_test(index: dict[str, Pattern]) -> None:
    lacking = {
        name: [what for what in ("works", "tests") if not getattr(pattern, what)]
        + ([] if pattern.datasets or pattern.starters else ["users"])
        for name, pattern in index.items()
    }
    assert len(index) >= 50
    assert {name: what for name, what in lacking.items() if what} == {}


def test_the_index_says_which_part_of_a_pattern_is_used(index: dict[str, Pattern]) -> None:
    """A dataset that only counts, removes or shows a pattern's columns is not a user of the pattern."""
    of_lake = {name for pattern in index.values() for name in pattern.datasets if name in EVERY}
    assert (
        of_lake
        == {name for pattern in index.values() for found in pattern.parts.values() for name in found} & EVERY.keys()
    )
    decorated = index["Metadata Decorator"]
    assert (decorated.parts, decorated.datasets) == ({("RunContext",): (EVERY_DATASET,)}, (EVERY_DATASET,))
    assert "bronze.visits" in index["Filter Interceptor"].parts["first_match",]
    first_come = index["Windowed Deduplicator"].parts["first_come",]
    assert {"silver.visits_live", "silver.visits_enriched_live"} <= set(first_come)
    assert "silver.visits" in index["Windowed Deduplicator"].parts["conflicting", "deduplicate"]


def test_the_index_says_what_only_tests_try(index: dict[str, Pattern]) -> None:
    """Of what a card names the lineage runs all; an option may be for another lineage."""
    assert index["Bucket"].only_tested == ("`tasks` of `read`",)
    assert index["Manifest"].only_tested == (), "the clock of a test is no part of a pattern"
    assert {"read"} <= set(index["Bucket"].works)


def test_an_option_is_given_by_name_by_position_or_in_a_mapping(tmp_path: Path) -> None:
    written = {
        "tools/pattern.py": "def use(rows, key=1, *, seen=2, many=3, partial_=4, all_=5, now=6, never=7): ...\n",
        "tools/lineage.py": "from functools import partial\nfrom tools.pattern import use\n"
        "use(0, 1)\npartial(use, partial_=1)\ndef more(given):\n    use(0, seen=1, many=1)\n",
        "tests/test_pattern.py": "from tools.pattern import use\nuse(0, 1, seen=2, partial_=3, all_=4, now=5)\n",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    code, tests = (Definitions(tmp_path, sources) for sources in (("tools",), ("tools", "tests")))
    assert Options(code, tests).only_tested(["tools.pattern"]) == ["`all_` of `use`"]
    (tmp_path / "tools" / "lineage.py").write_text(f"{written['tools/lineage.py']}    use(**given)\n", encoding="utf-8")
    assert Options(*(Definitions(tmp_path, one.sources) for one in (code, tests))).only_tested(["tools.pattern"]) == []


def test_a_pattern_names_the_functions_that_do_its_work(code: Definitions, index: dict[str, Pattern]) -> None:
    for pattern in index.values():
        module = next(module for module, file in code.files.items() if file == pattern.module)
        named = {(name.rpartition(".")[0] or module, name.rpartition(".")[2]) for name in pattern.card.verbs}
        assert named <= code.definitions.keys(), pattern.name
        public = [name for of, name in code.definitions if of == module and not name.startswith("_")]
        functions = [name for name in public if code.definitions[module, name].function]
        assert named or len(functions) == 1, f"How it works of {pattern.name} names none of {functions}"


def test_every_pattern_label_is_backed_by_code(code: Definitions) -> None:
    assert pattern_index.unfounded(code) == []


def test_a_label_whose_code_does_something_else_is_found(code: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset runs functions of these modules, but not every dataset uses the patterns."""
    labels = ("Dead-Letter", "Filter Interceptor", "Metadata Decorator")
    stats = replace(EVERY["gold.page_stats"], patterns=labels)
    monkeypatch.setattr(pattern_index, "EVERY", {stats.dataset: stats})
    assert [problem.partition(",")[0] for problem in pattern_index.unfounded(code)] == [
        f"{stats.dataset} names {label}" for label in labels[:2]
    ]


def test_a_label_without_code_is_found(code: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = replace(EVERY["gold.page_stats"], patterns=("Aligned Fan-In", "Static Joiner", "Checkpointer"))
    monkeypatch.setattr(pattern_index, "EVERY", {stats.dataset: stats})
    assert [problem.partition(",")[0] for problem in pattern_index.unfounded(code)] == [
        "gold.page_stats names Static Joiner",
        "gold.page_stats names Checkpointer",
    ]


def test_every_card_has_all_parts(index: dict[str, Pattern]) -> None:
    assert {name for name, pattern in index.items() if tuple(pattern.card.parts) != PARTS} == set()


def test_a_card_needs_a_module_of_its_name(tmp_path: Path) -> None:
    for name in ("full_loader.py", "loader.py"):
        (tmp_path / name).write_text(CARD, encoding="utf-8")
    card = pattern_card.read(tmp_path / "full_loader.py")
    assert card is not None
    assert (card.name, card.chapter, card.sentence) == ("Full Loader", 2, "whole")
    assert pattern_card.read(tmp_path / "loader.py") is None


def test_a_card_is_written_as_markdown(tmp_path: Path) -> None:
    file = tmp_path / "full_loader.py"
    file.write_text(CARD, encoding="utf-8")
    card = pattern_card.read(file)
    assert card is not None
    assert card.parts == {
        "Problem": "two lines of one paragraph.",
        "How it works": "`guard` and `Engine.FAST` of `lake`.\n\nAnother paragraph.",
        "Source": "*Data Engineering Design Patterns*, chapter 2.",
    }


def test_a_pattern_lists_its_modules_and_tests_defects(index: dict[str, Pattern]) -> None:
    letters = {defect.name: defect.file for defect in index["Dead-Letter"].defects}
    assert letters["an unknown condition is no reason"] == index["Dead-Letter"].module
    assert letters["a replay has another name each time"].endswith("dead_letter_replay.py")
    assert letters["a correction behind the watermark is late"].startswith("assets/")


def test_a_longer_name_does_not_match_the_shorter(index: dict[str, Pattern]) -> None:
    stateful = "tests/idempotency/test_stateful_merger.py"
    assert stateful in index["Stateful Merger"].tests
    assert stateful not in index["Merger"].tests


def test_slugs_of_patterns_are_distinct(index: dict[str, Pattern]) -> None:
    assert len({slug(name) for name in index}) == len(index)
