"""The jars Spark needs beyond its own: fetched once, pinned by checksum, shared by all deployments of a user.

They are listed in `deploy/jars.lock` and stored in `<jars>/<hash of the list>/`, which appears whole or not at
all. Apache Ivy, which comes with PySpark, fetches them from its default repository unless a mirror is set. A jar
that is already in `<jars>/` under its usual name is copied from there instead.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast
from xml.sax.saxutils import quoteattr

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.services import java as javas
from blogdata.services import trust
from blogdata.services.config import Settings
from blogdata.services.files import locked, sha256_of

_log = logging.getLogger(__name__)
_FETCH_SECONDS = 900


class JarsUnavailable(PlatformError):
    """Raised when jars could not be fetched."""

    transient = True


class JarCorrupt(PlatformError):
    """Raised when a jar does not have its pinned checksum."""


@dataclass(frozen=True, kw_only=True)
class Jar:
    """One pinned jar."""

    use: Literal["spark", "tool"]
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """File name of the jar, as in a Maven repository."""
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, kw_only=True)
class Jars:
    """A folder with all jars of a lock file."""

    folder: Path
    jars: tuple[Jar, ...]

    def files(self, use: Literal["spark", "tool"]) -> list[Path]:
        """Return the paths of the jars of one use, in the order of the lock file."""
        return [self.folder / jar.file_name for jar in self.jars if jar.use == use]


def lock_file() -> Path:
    """Return the path of the platform's own lock file."""
    return package_folder("blogdata") / "deploy" / "jars.lock"


def package_folder(name: str) -> Path:
    """Find the folder of an installed package without importing it.

    Returns:
        Its folder.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            what=f"The package {name!r} is not installed",
            where="the Python environment",
            next_step="Run make setup",
        )
    return Path(spec.origin).parent


def read_lock(path: Path) -> tuple[Jar, ...]:
    """Read a lock file.

    Args:
        path: Lines of `use group:artifact:version sha256`; `#` begins a comment.

    Returns:
        The jars in the order of the file.

    Raises:
        ConfigurationError: A line does not have this form.
    """
    jars = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        names = words[1].split(":") if len(words) == 3 else []
        if len(names) != 3 or words[0] not in ("spark", "tool") or len(words[2]) != 64:
            raise ConfigurationError(
                what=f"{line!r} is not a line of a jar lock",
                where=f"{path}, line {number}",
                next_step="Write: spark|tool group:artifact:version sha256",
            )
        use = cast(Literal["spark", "tool"], words[0])
        jars.append(Jar(use=use, group=names[0], artifact=names[1], version=names[2], sha256=words[2]))
    return tuple(jars)


def locate(settings: Settings, lock: Path | None = None) -> Jars:
    """Return the folder for the jars of a lock file, whether they are there or not.

    Args:
        lock: The lock file; the platform's own when None.

    Returns:
        The folder and the jars it should hold.
    """
    path = lock or lock_file()
    name = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return Jars(folder=settings.jars / name, jars=read_lock(path))


def missing(jars: Jars) -> list[Jar]:
    """List the jars that are not in their folder."""
    return [jar for jar in jars.jars if not (jars.folder / jar.file_name).is_file()]


def corrupt(jars: Jars) -> list[Jar]:
    """List the jars in their folder whose checksum is not the pinned one."""
    present = [jar for jar in jars.jars if (jars.folder / jar.file_name).is_file()]
    return [jar for jar in present if sha256_of(jars.folder / jar.file_name) != jar.sha256]


def download_missing(settings: Settings, java: javas.Java, lock: Path | None = None) -> Jars:
    """Return the folder of jars; missing ones are fetched.

    Args:
        lock: The lock file; the platform's own when None.

    Returns:
        The complete folder.

    Raises:
        ConfigurationError: The folder of jars cannot be created.
        JarsUnavailable: Jars could not be fetched.
        JarCorrupt: A fetched jar does not have its pinned checksum; nothing that was fetched is kept.
    """
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
    with locked(settings.jars / ".lock", seconds=_FETCH_SECONDS):
        if not missing(jars):
            return jars
        with tempfile.TemporaryDirectory(dir=settings.jars, prefix=".fetch-") as name:
            staging = Path(name)
            complete = staging / "jars"
            complete.mkdir()
            wanted = [jar for jar in jars.jars if not _take_local(settings.jars, jar, complete)]
            if wanted:
                _log.info("Fetching %d jars for Spark, once, into %s", len(wanted), jars.folder)
                _fetch(settings, java, wanted, staging, complete)
            for jar in jars.jars:
                _check(complete / jar.file_name, jar)
            if jars.folder.exists():
                # The folder is damaged: the pinned jars are replaced, the engine jars built there stay.
                for jar in jars.jars:
                    (complete / jar.file_name).replace(jars.folder / jar.file_name)
            else:
                complete.rename(jars.folder)
    return jars


def _take_local(root: Path, jar: Jar, target: Path) -> bool:
    source = root / jar.file_name
    if not source.is_file() or sha256_of(source) != jar.sha256:
        return False
    shutil.copyfile(source, target / jar.file_name)
    return True


def _fetch(settings: Settings, java: javas.Java, jars: list[Jar], staging: Path, target: Path) -> None:
    root = f" root={quoteattr(settings.maven_mirror)}" if settings.maven_mirror else ""
    (staging / "settings.xml").write_text(
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(staging / 'cache'))}/>"
        f'<resolvers><ibiblio name="central" m2compatible="true"{root}/></resolvers></ivysettings>',
        encoding="utf-8",
    )
    dependencies = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" '
        'conf="default->master(*)"/>'
        for jar in jars
    )
    (staging / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="blogdata" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    bundled = sorted((package_folder("pyspark") / "jars").glob("ivy-*.jar"))
    if not bundled:
        raise JarsUnavailable(
            what="PySpark's jars lack Apache Ivy",
            where=str(package_folder("pyspark") / "jars"),
            next_step="Install the pyspark of uv.lock again: make clean setup",
        )
    command = [
        str(java.executable),
        *trust.java_options(settings.ca_file, staging),
        *("-cp", str(bundled[-1]), "org.apache.ivy.Main", "-warn"),
        *("-settings", str(staging / "settings.xml"), "-ivy", str(staging / "ivy.xml")),
        *("-types", "jar", "-retrieve", str(target / "[artifact]-[revision].[ext]")),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        raise _unavailable(settings, jars, f"no answer within {_FETCH_SECONDS} s") from error
    absent = [jar for jar in jars if not (target / jar.file_name).is_file()]
    if absent:
        raise _unavailable(settings, absent, _reason(output))


def _reason(output: str) -> str:
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for line in lines if "error" in line.lower() or "exception" in line.lower()]
    return (telling or [line for line in lines if line] or ["Ivy said nothing"])[0][:300]


def _unavailable(settings: Settings, jars: list[Jar], reason: str) -> JarsUnavailable:
    return JarsUnavailable(
        what=f"{len(jars)} jars could not be fetched ({jars[0].file_name}, ...): {reason}",
        where=settings.maven_mirror or "the default Maven repository",
        next_step=f"Check the network, set BLOGDATA_MAVEN_MIRROR, or put the jars into {settings.jars}",
    )


def _check(path: Path, jar: Jar) -> None:
    found = sha256_of(path)
    if found != jar.sha256:
        raise JarCorrupt(
            what=f"{jar.file_name} has the checksum {found}, not {jar.sha256}; nothing was kept",
            where=f"{jar.group}:{jar.artifact}:{jar.version}",
            next_step="Fetch again, from another mirror if it stays; change deploy/jars.lock only on purpose",
        )
