"""The map of the architecture page is the one of the folders and of the imports."""

from __future__ import annotations

import ast
import re
from functools import cache

from docs.pages import FENCE, ROOT, text
from docs.test_wheel import TOOL

PAGE = "docs/explanation/architecture.md"
PLATFORM = ROOT / "platform" / "blogdata"
BLOG = {"assets", "quality", "sensors", "definitions"}


@cache
def imported() -> frozenset[tuple[str, str]]:
    """Return each room of the platform with each package that it imports, wherever that stands in a module."""
    found = set()
    for file in PLATFORM.glob("*/**/*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {(file.relative_to(PLATFORM).parts[0], name.partition(".")[0]) for name in names}
    return frozenset(found)


def importers(*packages: str) -> set[str]:
    return {room for room, package in imported() if package in packages}


def drawn(containing: str) -> str:
    (found,) = [match[2] for match in FENCE.finditer(text(PAGE)) if containing in match[2]]
    return str(found)


def test_the_tree_has_every_folder() -> None:
    lines = drawn("platform/  ").splitlines()
    rooms = {match[1] for line in lines if (match := re.match(r"    (\w+)/ ", line))}
    assert rooms == {folder.name for folder in PLATFORM.iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    others = {
        name
        for line in lines
        if re.match(r"\w", line)
        for name in re.findall(r"([\w.]+)(?:/|(?<=\.py))", line.split("  ")[0])
    }
    assert others >= {*TOOL["importlinter"]["root_packages"], "definitions.py"} - {"blogdata", "analytics"}
    assert [name for name in others if not (ROOT / name).exists()] == []


def test_the_arrows_are_the_layers_that_lint_holds() -> None:
    arrows = [re.split(r",\s*", wave.strip()) for wave in drawn("<-").split("<-")]
    (layers,) = [contract["layers"] for contract in TOOL["importlinter"]["contracts"] if contract["type"] == "layers"]
    assert arrows == [re.split(r" \| ", layer.replace("blogdata.", "")) for layer in reversed(layers)]


def test_only_few_rooms_know_dagster_and_the_blog() -> None:
    assert importers("dagster") == {"runs", "stream", "deliver", "privacy", "watch", "cli", "operate"}
    assert importers(*BLOG) == {"deliver", "privacy", "watch", "cli"}
