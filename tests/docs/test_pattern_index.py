"""Every pattern that is said to work has its module, its user, its caller and its test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata import pattern_index
from blogdata.pattern_index import Pattern
from definitions import build
from docs.pages import ROOT
from orchestration.names import slug
from quality.contracts import EVERY
from services.config import PostgresSettings, Settings

WORKING = (
    "Full Loader",
    "Passthrough Replicator",
    "Readiness Marker",
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
    "Metadata Decorator",
    "Static Joiner",
    "Wrapper",
    "Aligned Fan-In",
    "Horizontal Partitioner",
    "Metadata Enhancer",
    "Audit-Write-Audit-Publish",
    "Constraints Enforcer",
    "Online Observer",
    "Dataset Tracker",
    "Fine-Grained Tracker",
)


@pytest.fixture(scope="module")
def index() -> dict[str, Pattern]:
    nowhere = Path("/nowhere")
    served = PostgresSettings(url="postgresql://nowhere/nothing")
    definitions = build(Settings(home=nowhere, landing=nowhere, lake=nowhere, jars=nowhere, postgres=served))
    return {pattern.name: pattern for pattern in pattern_index.find(ROOT, definitions)}


def test_the_index_has_the_patterns_that_work_and_no_other(index: dict[str, Pattern]) -> None:
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


def test_whoever_carries_a_pattern_s_label_calls_it() -> None:
    assert pattern_index.unfounded(ROOT) == []


def test_a_label_that_no_code_bears_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = replace(EVERY["gold.page_stats"], patterns=("Aligned Fan-In", "Static Joiner", "Checkpointer"))
    monkeypatch.setattr(pattern_index, "EVERY", {stats.dataset: stats})
    assert [problem.partition(",")[0] for problem in pattern_index.unfounded(ROOT)] == [
        "gold.page_stats names Static Joiner",
        "gold.page_stats names Checkpointer",
    ]


def test_a_module_whose_name_is_not_its_patterns_is_not_in_the_index(tmp_path: Path) -> None:
    card = '"""Full Loader: whole.\n\nSource: Data Engineering Design Patterns, ch. 2.\n"""\n'
    for name in ("full_loader.py", "loader.py"):
        (tmp_path / name).write_text(card, encoding="utf-8")
    assert pattern_index._card(tmp_path / "full_loader.py") == ("Full Loader", 2, "whole")
    assert pattern_index._card(tmp_path / "loader.py") is None


def test_slugs_of_patterns_are_distinct() -> None:
    assert len({slug(name) for name in WORKING}) == len(WORKING)
