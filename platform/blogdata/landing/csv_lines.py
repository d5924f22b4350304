"""Reads landed lines of CSV with `;` and a header, by the same declaration of fields as JSON.

Columns are found by the header's names, never by position: a producer may reorder them. A line with an unclosed quote,
with text behind a closing one, or with more or fewer values than its file's header is `not_csv`; so is every line of a
file whose header cannot be read. An empty value is a missing one. A quoted value cannot contain a line feed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence

from blogdata.landing.json_lines import Field, Read, text_of, unreadable_line, values_of


def reader(fields: Sequence[Field]) -> Callable[[int, bytes], Read]:
    """Return what reads the lines of one file, in their order, the header first; it has the reason `header`."""
    nothing = (None,) * len(fields)
    names: list[str] = []

    def read(offset: int, raw: bytes) -> Read:
        nonlocal names
        text = text_of(raw)
        if text is None:
            return nothing, (unreadable_line(raw),)
        row = _values(text.removesuffix("\r"))
        if offset == 0:
            names = [name.strip(" ") for name in row]
            return nothing, ("header",)
        if not row or len(row) != len(names):
            return nothing, ("not_csv",)
        # Of columns with one name the first counts.
        found = dict(zip(reversed(names), reversed(row), strict=True))
        return values_of({name: value or None for name, value in found.items()}, fields)

    return read


def _values(line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=";", strict=True), [])
    except csv.Error:
        return []
