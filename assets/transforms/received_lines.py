"""The lines of landed visits: events, or requests of access logs, by the extension of their file."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING

from assets.transforms import request_lines, visit_lines
from assets.transforms.request_lines import LogLines
from assets.transforms.visit_lines import VisitLines
from blogdata.landing.landed_formats import extension
from blogdata.landing.records import Values
from blogdata.services.config import LogSettings

if TYPE_CHECKING:
    import pyarrow as pa

_OF_LOGS = tuple(name for name in request_lines.COLUMNS if name not in visit_lines.COLUMNS)
COLUMNS = (*visit_lines.COLUMNS, *_OF_LOGS)
_NOTHING = (None,) * len(_OF_LOGS)


class ReceivedLines:
    """Reads lines of landed visits into :data:`COLUMNS`."""

    def __init__(self, logs: LogSettings) -> None:
        self._visits, self._logs = VisitLines(), LogLines(logs)

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        of_logs = self._logs.schema
        return pa.schema([*self._visits.schema, *(of_logs.field(name) for name in _OF_LOGS)])

    def has_state(self, file: str) -> bool:
        return extension(file) == "log" and self._logs.has_state(file)

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        if extension(file) == "log":
            read_request = self._logs.of_file(file, partition)
            return lambda offset, raw: _in_order((*read_request(offset, raw), None))
        read_visit = self._visits.of_file(file, partition)
        return lambda offset, raw: read_visit(offset, raw) + _NOTHING


_in_order = itemgetter(
    *(request_lines.COLUMNS.index(name) if name in request_lines.COLUMNS else -1 for name in COLUMNS)
)
