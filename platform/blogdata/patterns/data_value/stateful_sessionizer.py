"""Stateful Sessionizer: a stream keeps open sessions in its state, and lets one go when nothing more can belong to it.

Problem: an Incremental Sessionizer is as late as its partitions are long. A stream sees rows within seconds, but in any
order, and a session lies in many of its batches.

How it works: rows are grouped by visitor (:func:`sessionize`). The state of a visitor holds the rows of the open
sessions, each once, whatever came twice. New rows are merged into it, and the whole is cut wherever a silence is
longer than the inactivity, by the rule of the Incremental Sessionizer. So a late row extends a session, joins two, or
begins one of its own, in any order of arrival. An event-time timer is set for the session that ends first. It fires
when the watermark has passed the session's last row plus the inactivity: the session comes out once, completed, and
its rows leave the state. The state is as large as the rows of the inactivity and the allowed lateness, however long
the stream runs. The id comes from the first appended row alone (Keyed Idempotency), so a batch that is
retried, and the batch twin, find the same.

The trap: a timer that is set from the watermark (watermark plus inactivity) instead of the newest row. It fires while
rows may still come that belong to the session, and cuts it. A timer of processing time is worse: a slow batch ends
sessions. Rows behind the watermark are dropped by the engine without a word; count them from the batch's input.

When not to use it: when an hour is soon enough (Incremental Sessionizer): it takes late rows, too, and needs no state.
A visitor's rows are one state value, read and written with each batch the visitor appears in. Sessions come out when
*newer* rows have moved the watermark: while nothing lands, the last ones wait. A longer inactivity means later
sessions and more state. The state belongs to the number of shuffle partitions with which its checkpoint began, so more
workers share it only from a new checkpoint on.

Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from blogdata.patterns.data_value.incremental_sessionizer import (
    APPENDED,
    COMPLETED,
    ENDED,
    STARTED,
    SessionSpec,
    session_id,
)

CONFIGURATION: Mapping[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""Spark settings that a query with this state has to start with: timers need RocksDB."""
DUPLICATES, CONFLICTS = "duplicates", "conflicts"
"""Numbers of rows that a session has received again, with the same payload or with another one."""
_MICROS = "_micros"
_STATE = (_MICROS, DUPLICATES, CONFLICTS)


@dataclass(frozen=True, kw_only=True)
class LiveSessions:
    """What a session is, and how long a stream waits for its rows.

    Args:
        payload: Column that equal rows of a visitor (same time and ties) agree on; if not, they are in conflict.
    """

    session: SessionSpec
    late: timedelta
    payload: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a row that the state keeps, beside its time."""
        one = self.session
        named = (*one.ties, *one.position, *one.first.values(), *one.last.values(), *one.ever, *one.path.values())
        return tuple(dict.fromkeys((*named, self.payload)))


Held = Mapping[str, Any]
"""A row of the state: its time in microseconds, its columns, and how often it was received again."""


def sessionize(rows: DataFrame, spec: LiveSessions) -> DataFrame:
    """Compute the completed sessions of a stream of rows.

    Args:
        rows: The stream; its query starts with the settings of :data:`CONFIGURATION`.

    Returns:
        A stream of completed sessions, each once: the columns of the batch twin (`session_id`, `is_completed`, the hour
        in which the session is over, the number of rows in that hour, and `spec.session.state`), and the numbers of
        rows that were received again.
    """
    one = spec.session
    timed = rows.withWatermark(one.time, f"{int(spec.late.total_seconds())} seconds")
    # The engine finds late rows by the time column itself; the state has it in microseconds, whatever the time zone.
    kept = timed.select(one.visitor, one.time, F.unix_micros(one.time).alias(_MICROS), *spec.columns)
    types = {field.name: field.dataType.simpleString() for field in kept.schema.fields}
    fields = ", ".join(f"{name}: {types[name]}" for name in spec.columns)
    state = f"due BIGINT, rows ARRAY<STRUCT<{', '.join(f'{name}: BIGINT' for name in _STATE)}, {fields}>>"
    found = kept.groupBy(one.visitor).transformWithState(
        statefulProcessor=Sessionizer(spec, state),
        outputStructType=_output(spec, types),
        outputMode="append",
        timeMode="eventTime",
    )
    over = F.timestamp_micros(F.col(ENDED) + one.inactivity // timedelta(microseconds=1))
    return found.withColumns(
        {
            one.partition: F.date_format(over, "yyyy-MM-dd'T'HH"),
            "session_id": session_id(one),
            COMPLETED: F.lit(True),
            STARTED: F.timestamp_micros(STARTED),
            ENDED: F.timestamp_micros(ENDED),
        }
    )


def merged(held: Iterable[Held], new: Iterable[Held], spec: LiveSessions) -> list[Held]:
    """Merge new rows of a visitor into those held, by time; of equal rows the first appended stays."""
    found: dict[tuple[Any, ...], Held] = {}
    for row in (*held, *new):
        identity = (row[_MICROS], *(row[name] for name in spec.session.ties))
        other = found.get(identity)
        found[identity] = row if other is None else _first(other, row, spec)
    return [row for _, row in sorted(found.items())]


def cut(rows: Sequence[Held], spec: LiveSessions) -> list[list[Held]]:
    """Cut the rows of a visitor into sessions."""
    sessions: list[list[Held]] = []
    for row in rows:
        if not sessions or spec.session.apart(row[_MICROS] - sessions[-1][-1][_MICROS]):
            sessions.append([])
        sessions[-1].append(row)
    return sessions


def expires(session: Sequence[Held], spec: LiveSessions) -> int:
    """Return the watermark, in milliseconds, at which no row can belong to a session any more."""
    over: int = session[-1][_MICROS] + spec.session.inactivity // timedelta(microseconds=1)
    return -(-over // 1000)


def summarized(session: Sequence[Held], spec: LiveSessions) -> dict[str, Any]:
    """Compute the columns of a session from its rows; times in microseconds."""
    one, first, last = spec.session, session[0], session[-1]
    hour = timedelta(hours=1) // timedelta(microseconds=1)
    over = (last[_MICROS] + one.inactivity // timedelta(microseconds=1)) // hour
    return {
        STARTED: first[_MICROS],
        ENDED: last[_MICROS],
        one.count: len(session),
        **{name: first[of] for name, of in one.first.items()},
        **{name: last[of] for name, of in one.last.items()},
        **{name: any(row[name] for row in session) for name in one.ever},
        **{name: [row[of] for row in session[: one.path_length]] for name, of in one.path.items()},
        APPENDED: min(_position(row, spec) for row in session),
        one.new: sum(row[_MICROS] // hour == over for row in session),
        **{name: sum(row[name] for row in session) for name in (DUPLICATES, CONFLICTS)},
    }


class Sessionizer(StatefulProcessor):
    """Keeps the rows of a visitor's open sessions, and a timer for the session that is over first."""

    def __init__(self, spec: LiveSessions, state: str) -> None:
        self._spec, self._schema = spec, state

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._open = handle.getValueState("open", self._schema)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Merge the rows of a batch into the open sessions of their visitor."""
        due, held = self._read()
        new = ({**row.asDict(), DUPLICATES: 0, CONFLICTS: 0} for row in rows)
        self._keep(cut(merged(held, new, self._spec), self._spec), due)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Let go of the sessions that are over; the timer is set again for the next one."""
        _, held = self._read()
        mark, sessions = timerValues.getCurrentWatermarkInMs(), cut(held, self._spec)
        still = [session for session in sessions if expires(session, self._spec) > mark]
        self._keep(still, None)
        for session in sessions[: len(sessions) - len(still)]:
            yield Row(**{self._spec.session.visitor: key[0], **summarized(session, self._spec)})

    def close(self) -> None:
        """Nothing to release: the engine closes the state."""

    def _read(self) -> tuple[int | None, list[Held]]:
        found = self._open.get()
        if found is None:
            return None, []
        due, rows = found
        names = (*_STATE, *self._spec.columns)
        return due, [dict(zip(names, row, strict=True)) for row in rows]

    def _keep(self, sessions: Sequence[Sequence[Held]], due: int | None) -> None:
        """Replace the state, and move the timer from `due`, if it is still set, to the end of the first session."""
        if not sessions:
            self._open.clear()
            return
        # The sessions are in order, so the first one is over first.
        then = expires(sessions[0], self._spec)
        names = (*_STATE, *self._spec.columns)
        self._open.update((then, [tuple(row[name] for name in names) for session in sessions for row in session]))
        if then != due:
            if due is not None:
                self._handle.deleteTimer(due)
            self._handle.registerTimer(then)


def _first(one: Held, other: Held, spec: LiveSessions) -> Held:
    """Return the first appended of two equal rows, with the number of rows it stands for."""
    first, second = sorted((one, other), key=lambda row: _position(row, spec))
    same = first[spec.payload] == second[spec.payload]
    again = {name: first[name] + second[name] for name in (DUPLICATES, CONFLICTS)}
    again[DUPLICATES if same else CONFLICTS] += 1
    return {**first, **again}


def _position(row: Held, spec: LiveSessions) -> tuple[Any, ...]:
    return tuple(row[name] for name in spec.session.position)


def _output(spec: LiveSessions, types: Mapping[str, str]) -> str:
    one = spec.session
    position = ", ".join(f"{name}: {types[name]}" for name in one.position)
    columns = {
        one.visitor: types[one.visitor],
        **dict.fromkeys((STARTED, ENDED, one.count), "BIGINT"),
        **{name: types[of] for name, of in (*one.first.items(), *one.last.items())},
        **dict.fromkeys(one.ever, "BOOLEAN"),
        **{name: f"ARRAY<{types[of]}>" for name, of in one.path.items()},
        APPENDED: f"STRUCT<{position}>",
        **dict.fromkeys((one.new, DUPLICATES, CONFLICTS), "BIGINT"),
    }
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
