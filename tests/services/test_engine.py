from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.services import engine, jars, java
from blogdata.services.config import JavaChoice, Settings
from blogdata.services.jars import Jars

SOURCE = "package io.blogdata.engine; public class Hello extends org.apache.spark.sql.internal.SQLConf { }"


@pytest.fixture
def pinned(settings: Settings, tmp_path: Path) -> Jars:
    """The pinned jars in a separate folder, where the engine's jar is built."""
    real = jars.download_missing(settings)
    folder = tmp_path / "jars"
    folder.mkdir()
    for jar in real.jars:
        (folder / jar.file_name).symlink_to(real.folder / jar.file_name)
    return replace(real, folder=folder)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "java").mkdir(parents=True)
    (folder / "java" / "Hello.java").write_text(SOURCE)
    (folder / "META-INF" / "services").mkdir(parents=True)
    (folder / "META-INF" / "services" / "some.Register").write_text("io.blogdata.engine.Hello\n")
    return folder


@pytest.mark.parametrize("kind", ["auto", "bundled"])
def test_any_java_packs_sources_and_registrations(
    settings: Settings, pinned: Jars, sources: Path, kind: JavaChoice
) -> None:
    jar = engine.compile_if_absent(pinned, java.find(replace(settings, java=kind)), sources)
    with zipfile.ZipFile(jar) as archive:
        assert archive.namelist() == ["io/blogdata/engine/Hello.class", "META-INF/services/some.Register"]
        assert int.from_bytes(archive.read("io/blogdata/engine/Hello.class")[6:8], "big") == 61


def test_only_a_changed_source_builds_another_jar(settings: Settings, pinned: Jars, sources: Path) -> None:
    runtime = java.find(settings)
    first = engine.compile_if_absent(pinned, runtime, sources)
    built = first.stat().st_mtime_ns
    assert engine.compile_if_absent(pinned, runtime, sources) == first
    assert first.stat().st_mtime_ns == built
    (sources / "java" / "Hello.java").write_text(SOURCE + " // changed")
    assert engine.compile_if_absent(pinned, runtime, sources) != first
