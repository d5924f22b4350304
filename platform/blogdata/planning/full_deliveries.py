"""What landed on a day as a full delivery, which says who is absent, and as changes, which do not."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.lake.commit import Entry


def first_delivery(deliveries: Iterable[tuple[str, Entry]]) -> str | None:
    """Find the day of the first full delivery with a usable row."""
    return min((day for day, entry in deliveries if delivered_rows(entry)), default=None)


def delivered_on(delivery: Entry) -> str:
    """Return the day of a full delivery: the measure `load_date`, or the day in `landed` if it has no rows."""
    day = delivery.measures.get("load_date") or (delivery.landed or "").split(":")[0]
    return str(day)


def usable_rows(delivery: Entry) -> int:
    """Count the rows of a day that are not dead letters."""
    return delivery.rows_out - int(delivery.measures["dead"])


def changed_rows(day: Entry) -> int:
    """Count the changes of a day, rejected ones too; all other rows are of its full delivery."""
    return int(day.measures.get("changes", 0))


def delivered_rows(delivery: Entry) -> int:
    """Count the usable rows of a full delivery, without changes of the same day; a day without any is no delivery."""
    return usable_rows(delivery) - (changed_rows(delivery) - int(delivery.measures.get("dead_changes", 0)))
