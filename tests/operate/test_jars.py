from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.operate import jars
from blogdata.operate.config import Settings

CONTENT = b"not really a jar"


@pytest.fixture
def mirror(settings: Settings, tmp_path: Path) -> Settings:
    """Settings that fetch from a repository in a folder with one jar."""
    place = tmp_path / "mirror" / "org" / "example" / "thing" / "1.0"
    place.mkdir(parents=True)
    (place / "thing-1.0.jar").write_bytes(CONTENT)
    return replace(settings, jars=tmp_path / "jars", maven_mirror=(tmp_path / "mirror").as_uri())


@pytest.fixture
def lock(tmp_path: Path) -> Callable[..., Path]:
    def write(content: bytes = CONTENT, artifact: str = "thing") -> Path:
        path = tmp_path / "jars.lock"
        path.write_text(f"# one\nspark org.example:{artifact}:1.0 {hashlib.sha256(content).hexdigest()}\n")
        return path

    return write


def test_a_jar_is_fetched_once_from_the_mirror(mirror: Settings, lock: Callable[..., Path]) -> None:
    fetched = jars.download_missing(mirror, lock())
    assert [path.read_bytes() for path in fetched.files("spark")] == [CONTENT]
    gone = replace(mirror, maven_mirror="file:///nowhere")
    assert jars.download_missing(gone, lock()) == fetched


def test_a_jar_with_wrong_checksum_is_not_kept(mirror: Settings, lock: Callable[..., Path]) -> None:
    with pytest.raises(PlatformError, match=r"thing-1\.0\.jar"):
        jars.download_missing(mirror, lock(b"what was meant"))
    assert [path.name for path in mirror.jars.iterdir()] == [".lock"]
