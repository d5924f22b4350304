"""Applies faults to events: how each fault changes a line, and the reason for which the line is rejected.

A fault does the same to visit events and to ad displays; what differs is in the :class:`Shape` of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blogdata.simulator.simulated_visits import DISPLAY, VISIT, Displays, Visits
from blogdata.simulator.spec import HUGE_LINES_PER_HOUR, LINE_FAULTS, FaultRates
from blogdata.simulator.text import DAY_MS, FieldChange, Ints, Texts, date_time, join, pick, quoted, texts

ChangeEvents: TypeAlias = Visits | Displays
"""Events that one hour has made, in the order in which they arrive."""
VALID = 0
_CONNECTED_SINCE = "context.user.connected_since"
_REQUIRED = tuple(dict.fromkeys((*VISIT.required, *DISPLAY.required)))
_TYPED = tuple(dict.fromkeys(path for shape in (VISIT, DISPLAY) for path, _ in (*shape.wrong_types, *shape.numbers)))
REASONS: tuple[str, ...] = (
    "",
    "empty_line",
    "not_utf8",
    "too_large",
    "truncated",
    "not_json",
    *(f"missing_field:{name}" for name in _REQUIRED),
    *(f"wrong_type:{name}" for name in _TYPED),
    *(f"invalid_time:{name}" for name in (VISIT.time, DISPLAY.time, _CONNECTED_SINCE)),
    "impossible_time",
)
"""Reasons by code; code 0 is a valid line."""
_CODE = {reason: code for code, reason in enumerate(REASONS)}

_Variant = tuple[Texts, Ints]
HUGE_BYTES = 5_000_000
_CUTS = (2, 3, 8, 14, 25, 46, 47, 60, 75, 90, 100, 121)
_NOISE = (
    "{........",
    "hello",
    "<html><body>502 Bad Gateway</body></html>",
    "[1, 2, 3]",
    '"a text"',
    "null",
    "12",
    "{}{",
    "visit_id=1;page=/",
    "{'visit_id': 'x'}",
)
_EMPTY = ("", " ", "    ", "\t", "\r")


def draw_faults(draw: np.random.Generator, rates: FaultRates, events: ChangeEvents) -> dict[str, Ints]:
    """Draws the events that carry each fault: positions by fault name; an event carries at most one fault.

    Events without the field that a fault is about do not carry it.
    """
    shares = np.cumsum([getattr(rates, name) for name in LINE_FAULTS])
    code = np.searchsorted(shares, draw.random(len(events.event_ms)), side="right")
    hit = np.flatnonzero(code < len(LINE_FAULTS))
    chosen = {name: hit[code[hit] == number] for number, name in enumerate(LINE_FAULTS)}
    chosen["huge_line"] = chosen["huge_line"][:HUGE_LINES_PER_HOUR]
    if _CONNECTED_SINCE not in events.shape.optional:
        del chosen["invalid_connected_since"]
    return chosen


def break_lines(fault: str, events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    """Renders lines (large binary, with line feed), and the code of each one's reason for rejection, 0 if valid."""
    lines, reason = BREAKERS[fault](events, rows, draw)
    binary = lines.cast(pa.large_binary())
    feed = pa.scalar(b"\n", pa.large_binary())
    return pc.binary_join_element_wise(binary, feed, pa.scalar(b"", pa.large_binary())), reason


def _constant(reason: str, rows: Ints) -> Ints:
    return np.full(len(rows), _CODE[reason], np.int64)


def _field(events: ChangeEvents, rows: Ints, draw: np.random.Generator, *, value: str | None) -> _Variant:
    fields = (*events.shape.required, *events.shape.optional)
    choice = draw.integers(0, len(fields), len(rows))
    changes = [FieldChange(path=path, mask=choice == number, value=value) for number, path in enumerate(fields)]
    codes = np.array([_CODE.get(f"missing_field:{path}", VALID) for path in fields])
    return events.changed(rows, changes), codes[choice]


def _variant(events: ChangeEvents, rows: Ints, draw: np.random.Generator, *, of: str) -> _Variant:
    table: tuple[tuple[str, str], ...] = getattr(events.shape, of)
    choice = draw.integers(0, len(table), len(rows))
    changes = [FieldChange(path=path, mask=choice == number, value=value) for number, (path, value) in enumerate(table)]
    return events.changed(rows, changes), np.array([_CODE[f"wrong_type:{path}"] for path, _ in table])[choice]


def _time(events: ChangeEvents, rows: Ints, value: str | Texts, reason: str, path: str | None = None) -> _Variant:
    change = FieldChange(path=path or events.shape.time, mask=np.ones(len(rows), bool), value=value)
    return events.changed(rows, [change]), _constant(reason, rows)


def _future_time(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    ahead = draw.integers(1, 80, len(rows)) * 366 * DAY_MS
    return _time(events, rows, events.times(rows, events.event_ms[rows] + ahead), "impossible_time")


def _epoch_time(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    return _time(events, rows, events.times(rows, draw.integers(0, DAY_MS, len(rows))), "impossible_time")


def _naive_time(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    return _time(events, rows, quoted(date_time(events.event_ms[rows])), f"invalid_time:{events.shape.time}")


def _invalid_connected_since(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    variants = texts(['"yesterday"', '""', '"17/May/2015:10:05:03 +0000"'])
    values = pick(variants, draw.integers(0, 3, len(rows)))
    return _time(events, rows, values, f"invalid_time:{_CONNECTED_SINCE}", _CONNECTED_SINCE)


def _several_objects(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    event = events.changed(rows)
    between = pick(texts(["", " "]), draw.integers(0, 2, len(rows)))
    return join(event, between, event), _constant("not_json", rows)


def _truncated(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    whole = events.changed(rows)
    choice = draw.integers(0, len(_CUTS), len(rows))
    for number, cut in enumerate(_CUTS):
        whole = pc.if_else(pa.array(choice == number), pc.utf8_slice_codeunits(whole, 0, cut), whole)
    return whole, _constant("truncated", rows)


def _instead(
    events: ChangeEvents, rows: Ints, draw: np.random.Generator, *, lines: Sequence[str], why: str
) -> _Variant:
    return pick(texts(lines), draw.integers(0, len(lines), len(rows))), _constant(why, rows)


def _not_utf8(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    lines = events.changed(rows).cast(pa.large_binary())
    bad = b'"page":"/caf\xe9\xff'
    return pc.replace_substring(lines, b'"page":"', bad, max_replacements=1), _constant("not_utf8", rows)


def _huge_line(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    padding = '"padding":"' + "x" * HUGE_BYTES + '"'
    return events.changed(rows, extra=padding), _constant("too_large", rows)


def _unknown_field(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    extra = '"experiment":{"name":"colour \\"b\\"","weights":[1,2.50,1e3],"on":true}'
    return events.changed(rows, extra=extra, inner='"consent":null'), _constant("", rows)


def _conflict(events: ChangeEvents, rows: Ints, draw: np.random.Generator) -> _Variant:
    path, values = events.shape.other
    chosen = pick(texts(values), draw.integers(0, len(values), len(rows)))
    return _time(events, rows, chosen, "", path)


BREAKERS: dict[str, Callable[[ChangeEvents, Ints, np.random.Generator], _Variant]] = {
    "null_field": partial(_field, value="null"),
    "missing_field": partial(_field, value=None),
    "not_json": partial(_instead, lines=_NOISE, why="not_json"),
    "truncated": _truncated,
    "wrong_type": partial(_variant, of="wrong_types"),
    "number_as_string": partial(_variant, of="numbers"),
    "future_time": _future_time,
    "epoch_time": _epoch_time,
    "several_objects": _several_objects,
    "empty_line": partial(_instead, lines=_EMPTY, why="empty_line"),
    "not_utf8": _not_utf8,
    "huge_line": _huge_line,
    "unknown_field": _unknown_field,
    "naive_time": _naive_time,
    "invalid_connected_since": _invalid_connected_since,
    "conflict": _conflict,
}
