from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.services import jars, java, trust
from blogdata.services.config import Settings
from blogdata.services.java import Java

CONTENT = b"not really a jar"


@pytest.fixture
def runtime(settings: Settings) -> Java:
    return java.find(settings)


@pytest.fixture
def mirror(settings: Settings, tmp_path: Path) -> Settings:
    """Settings that fetch from a repository in a folder with one jar."""
    place = tmp_path / "mirror" / "org" / "example" / "thing" / "1.0"
    place.mkdir(parents=True)
    (place / "thing-1.0.jar").write_bytes(CONTENT)
    (place / "thing-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        "<artifactId>thing</artifactId><version>1.0</version></project>"
    )
    return replace(settings, jars=tmp_path / "jars", maven_mirror=(tmp_path / "mirror").as_uri())


@pytest.fixture
def lock(tmp_path: Path) -> Callable[..., Path]:
    def write(content: bytes = CONTENT, artifact: str = "thing") -> Path:
        path = tmp_path / "jars.lock"
        path.write_text(f"# one\nspark org.example:{artifact}:1.0 {hashlib.sha256(content).hexdigest()}\n")
        return path

    return write


def test_a_jar_is_fetched_once_from_the_mirror(mirror: Settings, runtime: Java, lock: Callable[..., Path]) -> None:
    fetched = jars.download_missing(mirror, runtime, lock())
    assert [path.read_bytes() for path in fetched.files("spark")] == [CONTENT]
    gone = replace(mirror, maven_mirror="file:///nowhere")
    assert jars.download_missing(gone, runtime, lock()) == fetched


def test_a_jar_with_wrong_checksum_is_not_kept(mirror: Settings, runtime: Java, lock: Callable[..., Path]) -> None:
    with pytest.raises(jars.JarCorrupt, match=r"thing-1\.0\.jar"):
        jars.download_missing(mirror, runtime, lock(b"what was meant"))
    assert [path.name for path in mirror.jars.iterdir()] == [".lock"]


def test_a_missing_jar_is_a_transient_error(mirror: Settings, runtime: Java, lock: Callable[..., Path]) -> None:
    with pytest.raises(jars.JarsUnavailable, match=r"absent-1\.0\.jar") as caught:
        jars.download_missing(mirror, runtime, lock(artifact="absent"))
    assert caught.value.transient
    assert caught.value.where == mirror.maven_mirror


def test_a_changed_jar_fails_its_checksum(mirror: Settings, runtime: Java, lock: Callable[..., Path]) -> None:
    fetched = jars.download_missing(mirror, runtime, lock())
    assert jars.corrupt(fetched) == []
    fetched.files("spark")[0].write_bytes(b"changed")
    assert [jar.artifact for jar in jars.corrupt(fetched)] == ["thing"]


@pytest.mark.parametrize("line", ["spark a:b:1", "spark a:b " + "0" * 64, "other a:b:1 " + "0" * 64])
def test_a_malformed_lock_line_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "jars.lock").write_text(f"# comment\n{line}\n")
    with pytest.raises(ConfigurationError) as caught:
        jars.read_lock(tmp_path / "jars.lock")
    assert caught.value.where.endswith("line 2")


def test_java_reads_the_trust_store_of_a_bundle(settings: Settings, tmp_path: Path) -> None:
    if settings.ca_file is None:
        pytest.skip("this machine has no bundle of certificates")
    options = trust.java_options(settings.ca_file, tmp_path)
    keytool = java.find(replace(settings, java="bundled")).home / "bin" / "keytool"
    command = [str(keytool), "-list", "-keystore", str(tmp_path / "trust.jks"), "-storepass", trust.PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    certificates = settings.ca_file.read_text(errors="replace").count("BEGIN CERTIFICATE")
    assert f"contains {certificates} entr" in listed.stdout
    assert any("trustStore=" in option for option in options)
