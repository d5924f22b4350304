"""The watermark of each hour of arrival: how far event time had come when the hour began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from patterns.core.commit import Entry
from patterns.error_management import late_data_detector
from patterns.error_management.late_data_detector import PartitionReading

ALLOWED_LATENESS = timedelta(minutes=15)


def watermarks(arrivals: Mapping[str, Entry], keys: Sequence[str]) -> dict[str, datetime | None]:
    """Compute the watermarks that hold for some hours of arrival.

    Args:
        arrivals: Publications of bronze.visits, of all hours before the last one asked about.
        keys: The hours.

    Returns:
        A watermark for every hour asked about, None where nothing can be late.
    """
    readings = [
        PartitionReading(key=key, max_event_time=_instant(entry.measures["max_event_time"]))
        for key, entry in sorted(arrivals.items())
    ]
    found = late_data_detector.watermarks(readings, ALLOWED_LATENESS, keys=keys)
    return {key: found[key] for key in keys}


def mark(watermark: datetime | None) -> str:
    """Give a watermark as it is kept with the partition it decided."""
    return "no watermark" if watermark is None else f"watermark {watermark.isoformat()}"


def moved(arrivals: Mapping[str, Entry], captured: Mapping[str, Entry]) -> dict[str, str]:
    """Give the hours whose late rows were told by a watermark that is no longer theirs, each with the one it has.

    Args:
        arrivals: Publications of bronze.visits.
        captured: Publications of silver.late_visits.
    """
    now = {key: mark(held) for key, held in watermarks(arrivals, sorted(set(arrivals) & set(captured))).items()}
    return {key: held for key, held in now.items() if captured[key].landed != held}


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
