from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.services import java
from blogdata.services.config import Settings


def test_the_bundled_java_is_taken_without_another(settings: Settings) -> None:
    found = java.find(replace(settings, java="auto", java_home=None, search_path=""))
    assert found.source == "bundled"
    assert found.version >= java.LEAST_VERSION


def test_a_missing_system_java_names_searched_places(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="BLOGDATA_JAVA=system") as caught:
        java.find(replace(settings, java="system", java_home=str(tmp_path), search_path=""))
    assert str(tmp_path) in caught.value.where


def test_the_shim_drops_only_the_missing_module(settings: Settings, tmp_path: Path) -> None:
    found = java.find(replace(settings, java="bundled"))
    home = java.launcher_home(found, tmp_path)
    options = [java.VECTOR_OPTION, "-Dname=two words", "-version"]
    naive = subprocess.run([str(found.executable), *options], capture_output=True, text=True, check=False)
    assert naive.returncode != 0
    shim = subprocess.run(
        [str(home / "bin" / "java"), "-XshowSettings:properties", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "name = two words" in shim.stderr
