"""The wheel contains one package besides the blog's own; every other list of packages is the same."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath
from typing import Any

from docs.pages import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOOL: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
WHEEL: list[str] = TOOL["hatch"]["build"]["targets"]["wheel"]["packages"]
INSTALLED = {PurePath(name).stem for name in WHEEL}
NOT_INSTALLED = {"analytics", "tools"}
"""Checked like the others: the other team's code, and what makes the pages."""


def test_only_one_package_of_the_platform_is_installed_beside_the_blogs() -> None:
    assert sorted(INSTALLED) == ["assets", "blogdata", "definitions", "quality", "sensors"]
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
