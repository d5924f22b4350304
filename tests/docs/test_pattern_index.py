"""Every pattern has its module, its user, its caller and its test, and the generated pages say so.

In one file, since all of them read the whole code once.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from docs.pages import PROJECT, ROOT
from quality.contracts import EVERY
from tools import pattern_card
from tools.docs import generated
from tools.pattern_card import PARTS
from tools.pattern_index import EVERY_DATASET, Pattern

CARD = '''"""Full Loader: whole.

Problem: two lines
of one paragraph.

How it works: :func:`guard` and ``Engine.FAST`` of :mod:`.lake`.

Another paragraph.

Source: "Data Engineering Design Patterns", ch. 2.
"""
'''


@pytest.fixture(scope="module")
def index() -> dict[str, Pattern]:
    return {pattern.name: pattern for pattern in PROJECT.patterns}


def test_every_pattern_has_a_user_a_caller_and_a_test(index: dict[str, Pattern]) -> None:
    lacking = {
        name: [what for what in ("work", "callers", "tests") if not getattr(pattern, what)]
        + ([] if pattern.datasets or pattern.starters else ["users"])
        for name, pattern in index.items()
    }
    assert len(index) >= 50
    assert {name: what for name, what in lacking.items() if what} == {}


def test_users_are_found_by_label_by_tag_by_command_or_in_the_building_block(index: dict[str, Pattern]) -> None:
    assert "bronze.visits" in index["Filter Interceptor"].datasets
    assert index["External Trigger"].starters == ("sensor `external_events`",)
    assert index["Transformation Replicator"].starters == ("schedule `replicate_at_half_past_five`",)
    assert index["Metadata Decorator"].datasets == (EVERY_DATASET,)
    assert {label for contract in EVERY.values() for label in contract.labels} <= index.keys()


def test_the_functions_that_a_card_names_are_there(index: dict[str, Pattern]) -> None:
    for pattern in index.values():
        module = pattern.module.removeprefix("platform/").removesuffix(".py").replace("/", ".")
        for verb in pattern.card.verbs:
            of, _, name = verb.rpartition(".")
            assert hasattr(import_module(of or module), name), f"How it works of {pattern.name} names {verb}"
        assert pattern.card.verbs or len(pattern.work) == 1, f"How it works of {pattern.name} names no function"


def test_every_card_has_all_parts(index: dict[str, Pattern]) -> None:
    assert {name for name, pattern in index.items() if tuple(pattern.card.parts) != PARTS} == set()


def test_a_card_needs_a_module_of_its_name(tmp_path: Path) -> None:
    for name in ("full_loader.py", "loader.py"):
        (tmp_path / name).write_text(CARD, encoding="utf-8")
    card = pattern_card.read(tmp_path / "full_loader.py")
    assert card is not None
    assert (card.name, card.chapter, card.sentence) == ("Full Loader", 2, "whole")
    assert card.parts == {
        "Problem": "two lines of one paragraph.",
        "How it works": "`guard` and `Engine.FAST` of `lake`.\n\nAnother paragraph.",
        "Source": "*Data Engineering Design Patterns*, chapter 2.",
    }
    assert pattern_card.read(tmp_path / "loader.py") is None


def test_the_generated_pages_are_current() -> None:
    stale = [
        str(file.relative_to(ROOT))
        for file, wanted in generated(PROJECT).items()
        if not file.is_file() or file.read_text(encoding="utf-8") != wanted
    ]
    assert not stale, f"run make docs: {stale}"
