"""The figures on the page of guarantees equal the stored logs of the campaigns."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from docs.pages import ROOT, text

KEPT = ROOT / "docs" / "certificates"
PAGE = " ".join(text("docs/explanation/guarantees.md").split())


def rows(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize(("log", "least"), [("crash-campaign", 500), ("every-writer", 10), ("movers", 10)])
def test_the_page_states_the_crash_campaigns_kills(log: str, least: int) -> None:
    rounds = rows(gzip.decompress((KEPT / f"{log}.jsonl.gz").read_bytes()).decode())
    kills = Counter(hit["kill"]["writer"] for each in rounds for hit in each["hits"])
    assert min(kills.values()) >= least
    assert f"{kills.total():,} kills in {len(rounds)} rounds" in PAGE
    assert f"the {len(kills)} writers" in PAGE
    assert f"at least {least} " in PAGE
    found = [
        figures
        for each in rounds
        for writer in {hit["kill"]["writer"] for hit in each["hits"]}
        for how in ("differences", "counted")
        if (figures := each[how].get(writer))
    ]
    assert f"of {sum(each['compared'] for each in found):,} rows compared" in PAGE
    assert not any(each[wrong] for each in found for wrong in ("lost", "doubled", "foreign"))


def test_the_page_states_the_models_steps() -> None:
    runs = rows((KEPT / "model-runs.jsonl").read_text(encoding="utf-8"))
    made = sum((Counter(each["made"]) for each in runs), Counter[str]())
    assert made.total() >= 10_000
    assert f"{made.total():,} steps on one version of the code" in PAGE
    assert f"each rule {min(made.values())} to {max(made.values()):,} times" in PAGE
    assert not any(each["counterexample"] for each in runs)
    assert len({each["code"] for each in runs}) == 1
