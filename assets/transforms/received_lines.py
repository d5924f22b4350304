"""The lines of landed visits: events, or requests of access logs, by the extension of their file."""

from __future__ import annotations

from collections.abc import Callable

from assets.transforms.request_lines import LogLines
from assets.transforms.visit_lines import VisitLines
from blogdata.landing.landed_formats import extension
from blogdata.landing.records import LineReader, Values
from blogdata.services.config import LogSettings
from quality.contracts.visits import RECEIVED


class ReceivedLines(LineReader):
    """Reads lines of landed visits, and of access logs if it has their settings; `older` as of :class:`VisitLines`."""

    contract = RECEIVED

    def __init__(self, logs: LogSettings | None, *, older: bool = False) -> None:
        self._visits, self._logs = VisitLines(older=older), LogLines(logs) if logs is not None else None

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        reader = self._logs if extension(file) == "log" else self._visits
        assert reader is not None, f"the settings of access logs are missing, for {file}"
        return reader.of_file(file, partition)
