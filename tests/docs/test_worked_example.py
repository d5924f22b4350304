"""The worked example of docs/extending.md does what it says: its code is run as it stands on the page."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pytest

import patterns.data_value
from assets import policy
from blogdata import pattern_index
from definitions import build
from docs.pages import files
from lineage.deployment import Deployment
from patterns.core import ledger
from patterns.core.contract import Contract
from quality.contracts import CONTRACTS, gold
from services.spark_connect import SparkServer
from simulator.spec import SimulationSpec

DAY = "2026-01-05"
FILES = files("docs/extending.md")
PATTERN = "platform/patterns/data_value/tail_folder.py"
TEST = "tests/data_value/test_tail_folder.py"
CONTRACT = "quality/contracts/gold.py"
ASSET = "assets/gold/browser_stats.py"


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def pattern(patch: pytest.MonkeyPatch) -> ModuleType:
    """The page's pattern, where its page puts it."""
    module = ModuleType("patterns.data_value.tail_folder")
    exec(compile(FILES[PATTERN], PATTERN, "exec"), module.__dict__)
    patch.setitem(sys.modules, module.__name__, module)
    patch.setattr(patterns.data_value, "tail_folder", module, raising=False)
    return module


@pytest.fixture(scope="module")
def contract(patch: pytest.MonkeyPatch) -> Contract:
    """The page's contract, among the others."""
    space = dict(vars(gold))
    exec(compile(FILES[CONTRACT], CONTRACT, "exec"), space)
    made: Contract = space["BROWSER_STATS"]
    patch.setattr(policy, "CONTRACTS", {**CONTRACTS, made.dataset: made})
    return made


@pytest.fixture(scope="module")
def published(spark_server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A simulated day, from the landing zone to enriched visits."""
    deployment = Deployment.create(tmp_path_factory.mktemp("example") / "home", spark_server.url)
    deployment.simulate(SimulationSpec(days=1, visits_per_day=600, seed=11))
    outcome = deployment.run(select=("bronze.visits", "silver.visits", "silver.visits_enriched"))
    assert outcome.ok, outcome.problems
    yield deployment
    deployment.close()


def test_the_blocks_are_python_and_the_patterns_card_is_found(tmp_path: Path) -> None:
    assert set(FILES) == {PATTERN, TEST, CONTRACT, ASSET}
    for text in FILES.values():
        ast.parse(text)
    file = tmp_path / "tail_folder.py"
    file.write_text(FILES[PATTERN], encoding="utf-8")
    card = pattern_index._card(file)
    assert card is not None
    assert card[:2] == ("Tail Folder", 5)


def test_the_pages_tests_pass(pattern: ModuleType, spark: Any) -> None:
    space: dict[str, Any] = {}
    exec(compile(FILES[TEST], TEST, "exec"), space)
    tests = [value for name, value in space.items() if name.startswith("test_") and inspect.isfunction(value)]
    assert len(tests) == 2
    for test in tests:
        test(spark)


def test_the_dataset_is_published_and_its_account_adds_up(
    pattern: ModuleType, contract: Contract, published: Deployment
) -> None:
    result = _materialize(published)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    (line,) = ledger.audit(published.lake, published.events, contract)
    assert line.balanced
    browsers = [
        browser
        for browser, hour in published.rows("silver.visits_enriched", "browser", "event_hour")
        if hour.startswith(DAY)
    ]
    largest = sorted(Counter(name or "unknown" for name in browsers).items(), key=lambda item: (-item[1], item[0]))
    expected = {**dict(largest[:2]), "other": sum(rows for _, rows in largest[2:])}
    assert dict(published.rows("gold.browser_stats", "browser", "events")) == expected
    assert line.entry.rows_in == len(browsers)


def test_cutting_the_tail_instead_of_folding_it_is_refused(
    pattern: ModuleType, contract: Contract, published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(frame: Any, *, within: str, name: str, measure: str, keep: int) -> Any:
        return frame.orderBy(measure, ascending=False).limit(keep)

    monkeypatch.setattr(pattern, "fold", cut)
    before = published.lake.version("gold.browser_stats")
    result = _materialize(published)
    assert not result.success
    failed = {check.check_name for check in result.get_asset_check_evaluations() if not check.passed}
    assert failed == {"ledger"}
    # The table's creation alone may be a version of its own.
    assert (published.lake.version("gold.browser_stats") or 0) <= (before or 0)


def _materialize(deployment: Deployment) -> dg.ExecuteInProcessResult:
    space: dict[str, Any] = {}
    exec(compile(FILES[ASSET], ASSET, "exec"), space)
    resources = build(deployment.settings).resources or {}
    return dg.materialize([space["browser_stats"]], partition_key=DAY, resources=resources, raise_on_error=False)
