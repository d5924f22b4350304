"""The map of the architecture page, the wheel and every list of packages agree with the folders and the imports."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import PurePath
from typing import Any

from docs.pages import FENCE, ROOT, text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = "docs/explanation/architecture.md"
PLATFORM = ROOT / "platform" / "blogdata"
TOOL: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
WHEEL: list[str] = TOOL["hatch"]["build"]["targets"]["wheel"]["packages"]
INSTALLED = {PurePath(name).stem for name in WHEEL}
NOT_INSTALLED = {"analytics", "tools"}
"""Checked like the others: the other team's code, and what makes the pages."""
BLOG = {"assets", "quality", "sensors", "resources", "definitions"}


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


def test_only_one_package_of_the_platform_is_installed_beside_the_blogs() -> None:
    assert sorted(INSTALLED) == ["assets", "blogdata", "definitions", "quality", "resources", "sensors"]
    assert all((ROOT / name).exists() for name in WHEEL)
    assert not (ROOT / "platform" / "__init__.py").exists()
    packages = {file.parent.name for file in (ROOT / "platform").glob("*/*.py")}
    assert packages == {"blogdata"}


def test_every_list_of_packages_is_the_one_of_the_wheel() -> None:
    expected = INSTALLED - {"definitions"} | NOT_INSTALLED
    assert {PurePath(name).name for name in TOOL["mypy"]["files"]} == expected | {"benchmarks", "tests"}
    linter = TOOL["importlinter"]
    assert {*linter["root_packages"]} == expected
    (layers,) = [contract["layers"] for contract in linter["contracts"] if contract["type"] == "layers"]
    ours = {name for layer in layers for name in re.split(r" \| ", layer)}
    below = {f"blogdata.{file.parent.name}" for file in (ROOT / "platform" / "blogdata").glob("*/__init__.py")}
    below |= {"blogdata.files"}
    assert ours == expected - {"blogdata", "analytics"} | below
