"""Lands the access logs that a person names, whatever becomes of one of them."""

from __future__ import annotations

import codecs
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from assets.bronze.request_lines import LogLines
from blogdata.contract.partitions import Grain, key_of
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.landing import log_formats
from blogdata.landing.landed_formats import DAMAGED, content
from blogdata.landing.log_declarations import HEADER, compile_columns
from blogdata.landing.log_splitter import oldest_first
from blogdata.landing.passthrough_replicator import LandOutcome, Replicated, land, spooled
from blogdata.operate.config import LogSettings

_EXAMINED_BYTES = 1 << 20
"""Bytes at the beginning of a file that show whether it is an access log."""
_SAID: dict[LandOutcome, str] = {
    "new": "landed",
    "same": "is there already: nothing was changed",
    "beginning": "is the beginning of what is there already: nothing was changed; if it was truncated and begins again "
    "with the same bytes, they count once",
    "grown": "has grown: the landed copy was replaced",
    "renamed": "landed under another name, its own was taken by another log",
    "empty": "has no line yet: nothing was landed",
}


@dataclass(kw_only=True)
class NamedLog:
    """A file that a person has named, and what became of it."""

    file: str
    path: Path
    name: str | None = None
    formats: list[str] = field(default_factory=list)
    landed: Replicated | None = None
    error: PlatformError | None = None

    def __str__(self) -> str:
        assert self.landed is not None
        of_format = f"format {', '.join(self.formats)}; " if self.formats else ""
        return f"{self.file}: {of_format}{_SAID[self.landed.outcome]} ({self.landed.path})"

    def as_json(self) -> dict[str, Any]:
        if self.landed is None:
            return {"file": self.file, "outcome": "refused", "reason": self.error and self.error.what}
        where = {"landed": str(self.landed.path), "outcome": self.landed.outcome, "formats": self.formats}
        return {"file": self.file, **where, "sha256": self.landed.sha256}


def land_logs(
    given: Sequence[Path], target: Path, settings: LogSettings, prepare: Callable[[Path], object]
) -> Iterator[NamedLog]:
    """Land logs, the oldest first, so that the lines of each hour come in the order in which they were logged."""
    with ExitStack() as stack:
        ready = {}
        for path in given:
            log = NamedLog(file=str(path), path=path)
            try:
                if path == Path("-"):
                    log.path, log.name = stack.enter_context(spooled(sys.stdin.buffer, target)), "piped.log"
                log.formats = _formats_in(log.path, settings)
                ready[log.path] = log
            except (PlatformError, OSError) as error:
                log.error = _error(error, log)
                yield log
        for path in oldest_first(
            ready, log_formats.formats(settings.formats, settings.zone), now=datetime.now(timezone.utc)
        ):
            log = ready[path]
            try:
                log.landed = land(path, target, name=log.name or path.name, prepare=prepare)
            except (PlatformError, OSError) as error:
                log.error = _error(error, log)
            yield log


def _formats_in(file: Path, logs: LogSettings) -> list[str]:
    """Find the formats of the lines at a file's beginning, the most frequent one first; none if it is empty.

    A file of which no line can be read is refused: its lines would all be dead letters, and hold back their hour.
    """
    if file.exists() and not file.is_file():
        raise ConfigurationError(
            what="it is no file",
            where=str(file),
            next_step="name access logs, those of a folder by a pattern; what comes through a pipe lands by the name -",
        )
    try:
        with content(file) as log:
            beginning = log.read(_EXAMINED_BYTES).removeprefix(codecs.BOM_UTF8)
    except DAMAGED as error:
        raise ConfigurationError(
            what=f"the file cannot be read: {error}",
            where=str(file),
            next_step="name an undamaged copy of it, or a decompressed one",
        ) from error
    # As bronze reads them; what a server logs now arrives now.
    reader = LogLines(logs)
    read = reader.of_file(file.name, key_of(datetime.now(timezone.utc), Grain.HOUR))
    lines = [line for line in beginning.split(b"\n") if line.strip()]
    rows = [dict(zip(reader.names, read(0, line), strict=True)) for line in lines]
    formats = Counter(str(row["format"]) for row in rows if not row["reasons"])
    formats.pop(log_formats.COMMENT, None)
    # Prose behind a `#` makes no log; a header of columns is one without lines yet.
    has_columns = any(line.startswith(HEADER.encode()) for line in lines)
    reasons = [reason for row in rows for reason in cast("list[str]", row["reasons"])]
    # The last line, which may be the only one, or the only one behind comments, may be begun only.
    begins = len(lines) == 1 and log_formats.formats(logs.formats, logs.zone).hour_of(lines[0]) is not None
    is_begun = not beginning.endswith(b"\n") and (has_columns or begins)
    if lines and not formats and (len(reasons) > is_begun or not (has_columns or is_begun)):
        reasons.append("not_combined_log:time")
        raise _no_access_log(file, reasons[0], [line.decode(errors="replace").strip() for line in lines])
    return [name for name, _ in formats.most_common()]


def _no_access_log(file: Path, reason: str, lines: Sequence[str]) -> ConfigurationError:
    headers = ((compile_columns("", line).lacks, line) for line in lines if line.startswith(HEADER))
    lacking = next((header for header in headers if header[0]), None)
    misfit = re.fullmatch(r"not_(\w+)_log:(.+)", reason)
    if lacking is not None:
        what = "no column, or more than one, is the {} of a request: {}".format(*lacking)
        step = "have the server log date, time, c-ip, cs-method, cs-uri-stem and sc-status, each once"
    elif misfit is None:
        what, step = f"the first one is rejected: {reason}", "name a log of requests since 2000, in UTF-8"
    else:
        why = "goes on after its last field" if misfit[2] == "end" else f"its {misfit[2]} does not fit"
        what = f"the first one is nearest to the format {misfit[1]}, but {why}"
        step = (
            f"name a log in one of the formats {', '.join(log_formats.NAMES)}, with times that tell their offset from "
            "UTC, or declare its own in blogdata.toml: [logs] format = '...'"
        )
    what = f"no line at its beginning can be read: {what}"
    return ConfigurationError(what=what, where=str(file), next_step=step)


def _error(error: PlatformError | OSError, log: NamedLog) -> PlatformError:
    if isinstance(error, PlatformError):
        # What came through a pipe is read from a file without a name.
        is_spooled = error.where == str(log.path)
        return type(error)(what=error.what, where=log.file, next_step=error.remedy) if is_spooled else error
    return ConfigurationError(
        what=f"it cannot be copied: {error.strerror or error}",
        where=log.file,
        next_step="make room in the landing zone, or mend what fails, and repeat the command: nothing lands twice",
    )
