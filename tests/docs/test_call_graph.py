"""The call graph, read from the code: an import alone is not a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.call_graph import Definitions, Name

FILES = {
    "platform/blogdata/patterns/keeper.py": """
def keep(rows): return _kept(rows)
def _kept(rows): return rows
def lose(rows): return None
class Box:
    def __init__(self): self.rows = keep([])
    def emptied(self): return lose(self.rows)
    def shaken(self): return turn()
def turn(): return 1
""",
    "assets/shop.py": """
from blogdata.patterns import keeper
from blogdata.patterns.keeper import Box, keep as held
from assets import shown
SALES = "gold.sales"
@made(SALES, deps=[shown.visits], tags={"pattern/keeper": ""})
def sales(step): return held(step.rows)
def imported(step): return 2
def boxed(step, box: Box): return box.shaken()
""",
    "assets/__init__.py": "from assets.shown import visits as shown_visits\n",
    "assets/shown.py": """
from blogdata.patterns import keeper
@made("silver.visits")
def visits(step): return keeper.lose(step.rows)
""",
    "assets/passed_on.py": """
import assets
def later(step): return assets.shown_visits
""",
}


@pytest.fixture
def code(tmp_path: Path) -> Definitions:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Definitions(tmp_path, ("platform", "assets"))


def of_keeper(code: Definitions, *roots: Name, without: tuple[Name, ...] = ()) -> set[str]:
    return {name for module, name in code.runs(roots, without=without) if module == "blogdata.patterns.keeper"}


def test_the_graph_follows_calls_by_any_name(code: Definitions) -> None:
    visits = ("assets.shown", "visits")
    assert of_keeper(code, ("assets.shop", "sales"), without=(visits,)) == {"keep", "_kept"}
    assert of_keeper(code, visits) == {"lose"}
    assert of_keeper(code, ("assets.passed_on", "later")) == {"lose"}


def test_an_uncalled_import_runs_nothing(code: Definitions) -> None:
    assert of_keeper(code, ("assets.shop", "imported")) == set()


def test_only_the_called_methods_of_a_class_run(code: Definitions) -> None:
    found = of_keeper(code, ("assets.shop", "boxed"))
    assert found == {"Box", "Box.__init__", "Box.shaken", "keep", "_kept", "turn"}


def test_a_declaration_exposes_its_dataset_and_tags(code: Definitions) -> None:
    sales = code.definitions["assets.shop", "sales"]
    assert sales.declares == {"gold.sales"}
    assert sales.tags == {"gold.sales", "pattern/keeper", ""}
