from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.services import java
from blogdata.services.config import Settings


def fake_java(home: Path, release: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nexit 1\n")
    executable.chmod(0o755)
    (home / "release").write_text(release)
    return home


def test_the_bundled_java_is_taken_without_another(settings: Settings) -> None:
    found = java.find(replace(settings, java="auto", java_home=None, search_path=""))
    assert found.source == "bundled"
    assert found.version >= java.LEAST_VERSION


def test_a_too_old_java_is_passed_over(settings: Settings, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'JAVA_VERSION="1.8.0_402"\n')
    found = java.find(replace(settings, java="auto", java_home=str(old), search_path=""))
    assert found.source == "bundled"


def test_java_home_goes_before_the_path(settings: Settings, tmp_path: Path) -> None:
    named = fake_java(tmp_path / "named", 'JAVA_VERSION="21.0.2"\n')
    found = java.find(replace(settings, java="auto", java_home=str(named)))
    assert found == java.Java(home=named, version=21, source="system")


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
