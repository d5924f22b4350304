"""Where landed lines enter: those of forgotten persons are overwritten in their files before anything reads them.

So a person does not come back with the provider's next full delivery, a late line, a replay, a backfill or the
correction of a dead letter, and is in no landed file either; all tables below are right by construction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from blogdata.files import locked
from blogdata.landing import in_place_overwriter, log_progress
from blogdata.landing.in_place_overwriter import Goes
from blogdata.landing.landed_formats import content, digested
from blogdata.landing.landed_links import leading_out
from blogdata.landing.landed_persons import Reader
from blogdata.landing.lines import Bounds, faults_of
from blogdata.landing.log_splitter import LOGS
from blogdata.landing.sizes import LandedSize, judge_all
from blogdata.landing.suppression_list import SuppressionList
from blogdata.operate.config import Settings, load

LOCK = ".erasing.lock"
"""Name of the file in the home by which one process overwrites landed files at a time."""
SPLITTING = ".splitting.lock"
"""Name of the file in the home by which no line of an access log is overwritten while logs are split."""


def splitting(settings: Settings) -> AbstractContextManager[None]:
    """Keep others from overwriting lines of access logs: one that is being split would be refused from then on."""
    return locked(settings.home / SPLITTING)


def erase_by_home(home: Path, landing: Path, files: Iterable[Path]) -> None:
    """Overwrite as :func:`erase_known`, in a worker: settings have secrets, so they are read there and not sent."""
    present = [file for file in files if leading_out(file, landing) is None and file.is_file()]
    erase_known(load(overrides={"BLOGDATA_HOME": str(home)}), landing, present)


def erase_known(settings: Settings, landing: Path, files: Sequence[Path]) -> Mapping[Path, int]:
    """Overwrite the lines of all persons on the suppression list in landed files; return their number by file."""
    if not files or SuppressionList.of(settings).suppressed() is None:
        return {}
    with locked(settings.home / LOCK):
        # Read again: somebody may have been forgotten while this process waited.
        known = SuppressionList.of(settings)
        suppressed = known.suppressed()
        assert suppressed is not None
        bounds = Bounds(longest_line=settings.longest_line, largest_file=settings.largest_file)
        read = [
            file
            for file, size in zip(files, judge_all(files, landing, bounds), strict=True)
            if isinstance(size, LandedSize)
        ]
        # A hidden copy, of a log that is about to land, is not split.
        logs = [file for file in read if _log_of(file, landing) is not None and not file.name.startswith(".")]
        counts: dict[Path, int] = {}
        with splitting(settings) if logs else nullcontext():
            for file in read:
                goes, log = partial(suppressed.gone, Reader(file, landing, settings.logs)), _log_of(file, landing)
                with faults_of(file):
                    if lines := in_place_overwriter.overwrite(file, goes) if log is None else _erase_in_log(log, goes):
                        counts[file] = lines
        known.let_in(suppressed.returned)
    return counts


def _log_of(file: Path, landing: Path) -> Path | None:
    """Return the whole access log that a file is: of a link to one, such as to the current one, the log itself."""
    folder, target = landing / LOGS, file.resolve()
    if target.parent == folder.resolve():
        return folder / target.name
    return file if file.parent == folder else None


def _erase_in_log(log: Path, goes: Goes) -> int:
    """Overwrite lines of a whole access log, and renew the digest of what was taken from it.

    The new digest is there before the new content, beside the old one: at any moment one of them is that of the log.
    """
    taken, was_done = log_progress.read(log), log_progress.is_done(log)

    def note(staged: Path) -> None:
        if taken is not None:
            log_progress.write(log, replace(taken, erased_sha256=_digest(staged, taken.covered)))
            in_place_overwriter.sync(log_progress.file_of(log))
            in_place_overwriter.sync(log_progress.file_of(log).parent)

    count = in_place_overwriter.overwrite(log, goes, before=note)
    noted = log_progress.read(log)
    if noted is not None and noted.erased_sha256 is not None and _digest(log, noted.covered) == noted.erased_sha256:
        renewed = replace(noted, sha256=noted.erased_sha256, erased_sha256=None)
        if was_done:
            state = log.stat()
            renewed = replace(renewed, source_size=state.st_size, source_mtime_ns=state.st_mtime_ns)
        log_progress.write(log, renewed)
    return count


def _digest(log: Path, covered: int) -> str:
    digest = hashlib.sha256()
    with content(log) as file:
        digested(file, covered, digest)
    return digest.hexdigest()
