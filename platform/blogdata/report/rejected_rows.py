"""Rows that did not come through: dead letters by reason, with samples nobody can be recognized in, and late rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from blogdata.report.elements import Words

LONGEST = 240
"""Characters of a sample; the rest is cut off."""
_TOKEN = re.compile(r'"(?P<key>\w+)"(?P<colon>\s*:)|(?P<word>\b(?:true|false|null)\b)|(?P<other>.)', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class RejectedReason:
    """Rows of a dataset that were rejected for a reason; a row with several reasons counts for each.

    Args:
        dataset: Dataset that counted them.
        reason: The reason.
        rows: How many.
        newest: Newest partition that has one.
    """

    dataset: str
    reason: str
    rows: int
    newest: str


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A rejected line.

    Args:
        reasons: Why it is rejected.
        partition: Partition it is in.
        file: File it came from.
        offset: Byte at which it begins in the decompressed file.
        line: Its shape: cut, and without what it says.
    """

    reasons: Sequence[str]
    partition: str
    file: str
    offset: int
    line: str


@dataclass(frozen=True, kw_only=True)
class DayOfArrival:
    """What came in on a day.

    Args:
        day: The day of arrival.
        rows: Rows that came in.
        dead: Rows that were rejected.
        late: Rows behind the watermark.
        latest_seconds: How far behind the latest of them was; None without late rows.
    """

    day: str
    rows: int
    dead: int
    late: int
    latest_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class RejectedRows:
    """Dead letters and late rows.

    Args:
        reasons: Dead letters by reason, most rows first.
        samples: Some of the newest ones of each reason.
        days: What came in, by day of arrival.
        remedy: How dead letters are found and corrected; empty without any.
    """

    reasons: Sequence[RejectedReason]
    samples: Sequence[Sample]
    days: Sequence[DayOfArrival]
    remedy: Sequence[Words]


def shape_of(line: bytes, *, keys: Collection[str]) -> str:
    """Return the shape of a line: what kind of characters it has and where, but not which.

    Letters become `x` or `X` and digits `9`, except in the names of the given JSON keys and in `true`, `false` and
    `null`; what is no printable ASCII becomes `?`. So nobody is recognized, and a cut or garbled line still shows.

    Args:
        line: The line as received.
        keys: Names that are shown.
    """
    text = line[: LONGEST + 1].decode("utf-8", "replace")
    shown = text[:LONGEST] + ("…" if len(text) > LONGEST else "")
    return _TOKEN.sub(lambda found: _masked(found, keys), shown)


def _masked(found: re.Match[str], keys: Collection[str]) -> str:
    if found["word"] or found["key"] in keys:
        return found[0]
    return "".join(map(_kind, found[0]))


def _kind(character: str) -> str:
    if character == "…":
        return character
    if not character.isascii() or not character.isprintable():
        return "?"
    if character.isdigit():
        return "9"
    return ("X" if character.isupper() else "x") if character.isalpha() else character
