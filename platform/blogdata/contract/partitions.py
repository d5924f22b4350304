"""Time partitions as sortable strings: `2026-01-31T05`, `2026-01-31`, and a week as its Monday."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache

from blogdata.errors import ConfigurationError


class Grain(str, Enum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def key_format(self) -> str:
        return "%Y-%m-%dT%H" if self is Grain.HOUR else "%Y-%m-%d"

    @property
    def length(self) -> timedelta:
        return _LENGTHS[self]


_LENGTHS = {Grain.HOUR: timedelta(hours=1), Grain.DAY: timedelta(days=1), Grain.WEEK: timedelta(weeks=1)}


def start_of(key: str, grain: Grain) -> datetime:
    """Return the first instant of a partition, UTC."""
    try:
        return _parsed(key, grain.key_format)
    except ValueError as error:
        example = datetime(2026, 1, 5, 3, tzinfo=timezone.utc).strftime(grain.key_format)
        raise ConfigurationError(
            what=f"'{key}' is not the name of {'an' if grain is Grain.HOUR else 'a'} {grain.value}",
            where="partition",
            next_step=f"write it like {example} (UTC)",
        ) from error


# Plans and reports ask for the same keys again and again, and `strptime` and `strftime` are slow: the hours of decades.
_remembered = lru_cache(maxsize=200_000)


@_remembered
def _parsed(key: str, key_format: str) -> datetime:
    return datetime.strptime(key, key_format).replace(tzinfo=timezone.utc)


def key_of(moment: datetime, grain: Grain) -> str:
    """Return the key of the partition that contains a moment; a naive moment is taken as UTC."""
    utc = moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    if grain is Grain.WEEK:
        utc -= timedelta(days=utc.weekday())
    return utc.strftime(grain.key_format)


@_remembered
def coarser(key: str, grain: Grain, to: Grain) -> str:
    """Return the key of the longer partition that contains a partition."""
    return key_of(start_of(key, grain), to)


def finer(key: str, grain: Grain, to: Grain) -> tuple[str, ...]:
    """List the keys of all shorter partitions within a partition, in order."""
    start = start_of(key, grain)
    count = int(grain.length / to.length)
    return tuple(key_of(start + to.length * index, to) for index in range(count))


@_remembered
def following(key: str, grain: Grain) -> str:
    return key_of(start_of(key, grain) + grain.length, grain)


@_remembered
def previous(key: str, grain: Grain) -> str:
    return key_of(start_of(key, grain) - grain.length, grain)


def between(first: str, last: str, grain: Grain) -> tuple[str, ...]:
    """List all keys from first to last, both included, in order."""
    # Counted, not stepped with `following`: the last partition of the calendar has no next one.
    start, end = start_of(first, grain), start_of(last, grain)
    count = (end - start) // grain.length + 1
    return tuple(key_of(start + grain.length * index, grain) for index in range(count))


def ends_of(part: str, grain: Grain) -> tuple[str, str]:
    """Return the first and the last partition of a key, a day of hours, or a range `first..last` of these."""
    first, dots, last = part.strip().partition("..")
    begins, ends = _covered(first, grain)[0], _covered(last if dots else first, grain)[-1]
    if ends < begins:
        what = f"'{part.strip()}' ends before it begins"
        raise ConfigurationError(what=what, where="partition", next_step=f"write {last}..{first}")
    return begins, ends


def _covered(key: str, grain: Grain) -> tuple[str, ...]:
    written = Grain.DAY if len(key) == len("2026-01-05") else grain
    if grain is Grain.HOUR and written is Grain.DAY:
        return finer(key, Grain.DAY, Grain.HOUR)
    return (key_of(start_of(key, written), grain),)


def contiguous(keys: Iterable[str], grain: Grain) -> list[tuple[str, str]]:
    """Group keys into gapless ranges, each by its first and last key, in order."""
    ranges: list[tuple[str, str]] = []
    for key in sorted(set(keys)):
        if ranges and following(ranges[-1][1], grain) == key:
            ranges[-1] = (ranges[-1][0], key)
        else:
            ranges.append((key, key))
    return ranges
