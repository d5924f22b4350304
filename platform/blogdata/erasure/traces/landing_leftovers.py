"""Files of the landing zone that nobody reads: hidden ones that killed processes left, and events that were refused.

Those with values are removed. Of hidden files only those under names that the platform writes; what a producer has
under a hidden name may be about to land.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from blogdata.erasure.cleared import Cleared, Note
from blogdata.patterns.ingestion import external_trigger, passthrough_replicator, whole_files
from blogdata.patterns.ingestion.log_splitter import LOGS
from blogdata.patterns.security import in_place_overwriter
from blogdata.services.config import Settings
from blogdata.services.files import locked
from blogdata.suppression.entry import LOCK, splitting

_PLACE = "hidden files of the landing zone"
_LANDING = "landing/"
_REFUSED_EVENTS = f"{_LANDING}{external_trigger.FOLDER}/{external_trigger.REFUSED}/"
_ENDINGS = (whole_files.PARTIAL, passthrough_replicator.STAGED, in_place_overwriter.STAGED)


def clear(settings: Settings, paths: Collection[str], note: Note) -> Cleared:
    """Remove the hidden files that have values, while nobody lands or splits logs, or overwrites lines.

    Raises:
        LockTimeout: Others are at work for too long; transient.
    """
    found = [settings.landing / path.removeprefix(_LANDING) for path in paths if _is_left(path)]
    if not found:
        return Cleared(place=_PLACE)
    logs = settings.landing / LOGS
    with locked(settings.home / LOCK), splitting(settings), whole_files.alone(logs):
        there = [file for file in found if file.exists()]
        note(Cleared(place=_PLACE, files=len(there)))
        passthrough_replicator.remove_left(logs)
        for file in there:
            if not file.name.startswith(passthrough_replicator.SPOOL):
                file.unlink(missing_ok=True)
    return Cleared(place=_PLACE, files=sum(not file.exists() for file in there))


def _is_left(path: str) -> bool:
    name = PurePosixPath(path).name
    own = name.endswith(_ENDINGS) or name.startswith(passthrough_replicator.SPOOL)
    return path.startswith(_REFUSED_EVENTS) or (path.startswith(_LANDING) and name.startswith(".") and own)
