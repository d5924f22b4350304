"""Every pattern that is said to work has its module, its user, its caller and its test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata import pattern_card, pattern_index
from blogdata.pattern_card import PARTS
from blogdata.pattern_index import Pattern
from definitions import build
from docs.pages import ROOT
from orchestration.names import slug
from quality.contracts import EVERY
from services.config import PostgresSettings, Settings
from services.partner_settings import PartnerSettings

WORKING = (
    "Full Loader",
    "Passthrough Replicator",
    "Readiness Marker",
    "External Trigger",
    "Dead-Letter",
    "Checkpointer",
    "Static Late Data Integrator",
    "Dynamic Late Data Integrator",
    "Filter Interceptor",
    "Late Data Detector",
    "Windowed Deduplicator",
    "Fast Metadata Cleaner",
    "Data Overwrite",
    "Merger",
    "Transactional Writer",
    "Stateful Merger",
    "Keyed Idempotency",
    "Proxy",
    "Distributed Aggregator",
    "Local Aggregator",
    "Metadata Decorator",
    "Dynamic Joiner",
    "Incremental Sessionizer",
    "Stateful Sessionizer",
    "Static Joiner",
    "Wrapper",
    "Bin Pack Orderer",
    "FIFO Orderer",
    "Aligned Fan-In",
    "Exclusive Choice",
    "Parallel Split",
    "Single Runner",
    "Concurrent Runner",
    "Unaligned Fan-In",
    "Isolated Sequencer",
    "Local Sequencer",
    "Horizontal Partitioner",
    "Metadata Enhancer",
    "Audit-Write-Audit-Publish",
    "Constraints Enforcer",
    "Schema Compatibility Enforcer",
    "Schema Migrator",
    "Online Observer",
    "Offline Observer",
    "Dataset Tracker",
    "Fine-Grained Tracker",
    "Flow Interruption Detector",
    "Skew Detector",
    "Lag Detector",
    "SLA Misses Detector",
)

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
    nowhere = Path("/nowhere")
    served = PostgresSettings(url="postgresql://nowhere/nothing")
    fed = PartnerSettings(url="http://nowhere")
    definitions = build(
        Settings(home=nowhere, landing=nowhere, lake=nowhere, jars=nowhere, postgres=served, partner=fed)
    )
    return {pattern.name: pattern for pattern in pattern_index.find(ROOT, definitions)}


def test_the_index_has_exactly_the_working_patterns(index: dict[str, Pattern]) -> None:
    assert set(index) == set(WORKING)


@pytest.mark.parametrize("name", WORKING)
def test_a_pattern_has_a_user(index: dict[str, Pattern], name: str) -> None:
    assert index[name].datasets or index[name].starters


@pytest.mark.parametrize("name", WORKING)
def test_the_platform_calls_the_module_of_a_pattern(index: dict[str, Pattern], name: str) -> None:
    assert index[name].works, f"nothing outside the pattern library calls {index[name].module}"


@pytest.mark.parametrize("name", WORKING)
def test_a_pattern_has_a_test(index: dict[str, Pattern], name: str) -> None:
    assert index[name].tests


def test_every_pattern_label_is_backed_by_code() -> None:
    assert pattern_index.unfounded(ROOT) == []


def test_a_label_without_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = replace(EVERY["gold.page_stats"], patterns=("Aligned Fan-In", "Static Joiner", "Checkpointer"))
    monkeypatch.setattr(pattern_index, "EVERY", {stats.dataset: stats})
    assert [problem.partition(",")[0] for problem in pattern_index.unfounded(ROOT)] == [
        "gold.page_stats names Static Joiner",
        "gold.page_stats names Checkpointer",
    ]


@pytest.mark.parametrize("name", WORKING)
def test_a_pattern_s_card_has_all_parts(index: dict[str, Pattern], name: str) -> None:
    assert tuple(index[name].card.parts) == PARTS


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


def test_slugs_of_patterns_are_distinct() -> None:
    assert len({slug(name) for name in WORKING}) == len(WORKING)
