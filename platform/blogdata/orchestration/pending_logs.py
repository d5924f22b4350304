"""Splits the access logs that have landed into hours of arrival, before a run or a stream reads these."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from blogdata.patterns.ingestion import log_formats
from blogdata.patterns.ingestion.log_splitter import SplitLog, split_all, unsplit_logs
from blogdata.services.config import Settings
from blogdata.suppression.entry import erase_known, splitting


def split_pending(settings: Settings, landing: Path) -> list[SplitLog]:
    """Split every log that is not completely split yet; lines of forgotten persons are overwritten before.

    Raises:
        LockTimeout: Others are overwriting or splitting for too long; transient.
    """
    known = log_formats.formats(settings.logs.formats)
    pending = unsplit_logs(landing)
    if not pending:
        return []
    erase_known(settings, landing, pending)
    with splitting(settings):
        return list(split_all(landing, known.hour_of, now=datetime.now(timezone.utc)))
