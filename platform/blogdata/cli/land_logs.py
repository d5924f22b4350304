"""Lands the access logs that a person names: files, folders, patterns and pipes, whatever becomes of one of them."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.patterns.ingestion.log_splitter import HourOf, oldest_first
from blogdata.patterns.ingestion.passthrough_replicator import LandOutcome, Replicated, land, spooled
from blogdata.patterns.ingestion.whole_files import BLOCK, content, opened, unreadable

_STANDARD_INPUT = Path("-")
_PIPED = "piped.log"
"""Name of the copy of what came through a pipe."""
_SAID: Mapping[LandOutcome, str] = {
    "new": "landed",
    "same": "is there already: nothing was changed",
    "beginning": "is the beginning of what is there already: nothing was changed; if it was truncated and begins again "
    "with the same bytes, they count once",
    "grown": "has grown: the landed copy was replaced",
    "renamed": "landed under another name, its own was taken by another log",
    "empty": "has no line yet: nothing was landed",
}


class NoAccessLog(ConfigurationError):
    """Raised when no line at the beginning of a file has a known format."""


class LogNotLanded(PlatformError):
    """Raised when the machine failed to read or copy a file, such as when the disk is full."""

    exit_code = 2


class LogsRefused(PlatformError):
    """Raised when several of the files that were to land did not, and all others did."""

    exit_code = 2

    def __init__(self, refused: Sequence[PlatformError]) -> None:
        super().__init__(
            what=f"{len(refused)} files did not land: " + "; ".join(error.what for error in refused),
            where=", ".join(error.where for error in refused),
            next_step="all others landed; mend these, or leave them out, and repeat the command: nothing lands twice",
        )


@dataclass(frozen=True, kw_only=True)
class LogResult:
    """What became of one file.

    Args:
        landed: What landed; None if nothing did.
        error: Why it was refused; None if it was not.
        skipped: Why a file of a folder was left out; None if it was not.
    """

    file: str
    formats: Sequence[str] = ()
    landed: Replicated | None = None
    error: PlatformError | None = None
    skipped: str | None = None

    def __str__(self) -> str:
        """Return the line to print."""
        if self.landed is None:
            return f"{self.file}: " + (f"refused: {self.error.what}" if self.error else f"skipped: {self.skipped}")
        of_format = f"format {', '.join(self.formats)}; " if self.formats else ""
        return f"{self.file}: {of_format}{_SAID[self.landed.outcome]} ({self.landed.path})"

    def as_json(self) -> dict[str, Any]:
        """Return the fields to print as JSON."""
        if self.landed is None:
            reason = self.error.what if self.error else self.skipped
            return {"file": self.file, "outcome": "refused" if self.error else "skipped", "reason": reason}
        made = {"bytes": None, "sha256": None} if self.landed.replica is None else asdict(self.landed.replica)
        where = {"landed": str(self.landed.path), "outcome": self.landed.outcome, "formats": list(self.formats)}
        return {"file": self.file, **where, **made}


def land_logs(
    given: Sequence[Path],
    folder: Path,
    formats_of: Callable[[Path], list[str]],
    hour_of: HourOf,
    prepare: Callable[[Path], object] = lambda _: None,
) -> Iterator[LogResult]:
    """Land logs, the oldest first, so that the lines of each hour come in the order in which they were logged.

    Args:
        hour_of: Returns the hour of a line, None if it cannot be read.

    Yields:
        What became of each file.
    """
    with ExitStack() as stack:
        chosen = _Chosen(folder=folder, stack=stack)
        for path in given:
            yield from chosen.add(path)
        examined = [(file, _examined(file, formats_of, hour_of)) for file in chosen.files]
        yield from (result for _, result in examined if result.error or result.skipped)
        logs = {file.folder for file, result in examined if not result.skipped}
        yield from (_without_log(path) for path in chosen.folders if path not in logs)
        ready = {file.path: (file, result) for file, result in examined if not (result.error or result.skipped)}
        for path in oldest_first(ready, hour_of, now=datetime.now(timezone.utc)):
            yield _landed(*ready[path], folder, prepare)


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file to land."""

    path: Path
    shown: str
    name: str
    folder: Path | None = None


@dataclass(kw_only=True)
class _Chosen:
    """The files that a person has chosen; pipes are read to their ends."""

    folder: Path
    stack: ExitStack
    files: list[_File] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def add(self, given: Path) -> Iterator[LogResult]:
        """Add the files that a path or pattern names.

        Yields:
            What was refused.
        """
        for path in _expanded(given):
            try:
                self._add(path)
            except PlatformError as error:
                yield LogResult(file=str(path), error=error)
            except OSError as error:
                yield LogResult(file=str(path), error=_not_landed(str(path), error))

    def _add(self, path: Path) -> None:
        mode = _mode(path)
        if path == _STANDARD_INPUT:
            self._add_pipe(sys.stdin.buffer, "standard input")
        elif stat.S_ISDIR(mode):
            self._add_folder(path)
        elif stat.S_ISFIFO(mode):
            # The shell's <(…) is one; what was read of it once is not there to be read again.
            with opened(path) as pipe:
                self._add_pipe(pipe, str(path))
        elif stat.S_ISREG(mode):
            opened(path).close()
            self.files.append(_File(path=path, shown=str(path), name=path.name))
        else:
            raise ConfigurationError(
                what="it is neither a file, nor a folder, nor a pipe", where=str(path), next_step="name an access log"
            )

    def _add_pipe(self, pipe: IO[bytes], shown: str) -> None:
        spool = self.stack.enter_context(spooled(pipe, self.folder))
        self.files.append(_File(path=spool, shown=shown, name=_PIPED))

    def _add_folder(self, folder: Path) -> None:
        try:
            inside = sorted(path for path in folder.iterdir() if path.name[0] != "." and path.is_file())
        except OSError as error:
            raise unreadable(folder, error, kind="folder") from error
        self.folders.append(folder)
        self.files += [_File(path=path, shown=str(path), name=path.name, folder=folder) for path in inside]


def _expanded(given: Path) -> list[Path]:
    """Return the files that a pattern matches; what is given itself if it is a file's name, or matches none."""
    # Path.glob takes no absolute pattern.
    matching = [] if os.path.lexists(given) else sorted(glob.glob(str(given)))  # noqa: PTH207
    return [Path(path) for path in matching] or [given]


def _mode(path: Path) -> int:
    if path == _STANDARD_INPUT:
        return 0
    try:
        return path.stat().st_mode
    except OSError as error:
        raise unreadable(path, error) from error


def _examined(file: _File, formats_of: Callable[[Path], list[str]], hour_of: HourOf) -> LogResult:
    try:
        return LogResult(file=file.shown, formats=formats_of(file.path))
    except NoAccessLog as error:
        if _is_being_written(file.path, hour_of):
            return LogResult(file=file.shown)
        if file.folder:
            return LogResult(file=file.shown, skipped=error.what)
        return LogResult(file=file.shown, error=_naming(error, file))
    except PlatformError as error:
        return LogResult(file=file.shown, error=_naming(error, file))


def _is_being_written(log: Path, hour_of: HourOf) -> bool:
    """Return whether a file has only the beginning of a first line, up to its time or further."""
    with content(log) as file:
        line = file.readline(BLOCK)
    return not line.endswith(b"\n") and hour_of(line) is not None


def _without_log(folder: Path) -> LogResult:
    error = NoAccessLog(
        what="no file in it is an access log",
        where=str(folder),
        next_step="name the folder that the logs lie in: those in its subfolders are not looked at",
    )
    return LogResult(file=str(folder), error=error)


def _landed(file: _File, result: LogResult, folder: Path, prepare: Callable[[Path], object]) -> LogResult:
    try:
        return replace(result, landed=land(file.path, folder, name=file.name, prepare=prepare))
    except PlatformError as error:
        return replace(result, error=_naming(error, file))
    except OSError as error:
        return replace(result, error=_not_landed(file.shown, error))


def _not_landed(shown: str, error: OSError) -> LogNotLanded:
    return LogNotLanded(
        what=f"it cannot be copied: {error.strerror or error}",
        where=shown,
        next_step="make room in the landing zone, or mend what fails, and repeat the command: nothing lands twice",
    )


def _naming(error: PlatformError, file: _File) -> PlatformError:
    """Return an error that names what the person has named, and not the spooled copy of a pipe."""
    if error.where != str(file.path) or file.shown == str(file.path):
        return error
    return type(error)(what=error.what, where=file.shown, next_step=error.remedy)
