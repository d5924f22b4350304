"""Simulates the ads that were displayed in the visits of one hour, and renders them as JSON lines.

The ad that a visit's events name was displayed shortly before the first of them, as a rule. Some displays are lost,
some are older than the half hour in which an event belongs to a display, some ads are displayed a second time, and most
displays are of ads that nobody clicked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import (
    HOUR_MS,
    FieldChange,
    Ints,
    Shape,
    Texts,
    braces,
    constant,
    pair,
    pick,
)
from blogdata.simulator.visits import Visits, local_time
from blogdata.simulator.vocabulary import Pools

BELONGS_MS = 30 * 60_000
"""How long before an event its display was at most."""
HOURS_AHEAD = 1
"""How many hours before the first event of its visit a display may be."""
_LOST = 0.04
_TOO_EARLY = 0.04
_AGAIN = 0.2
_NOT_CLICKED = 0.2
_LONGEST_BEFORE_MS = 10 * 60_000
_LONGEST_AFTER_MS = 20 * 60_000
_END_MARGIN_MS = 2_000
DISPLAY = Shape(
    required=("ad_id", "page", "visit_id", "display_time", "campaign"),
    time="display_time",
    wrong_types=(
        ("ad_id", "17"),
        ("page", '["/"]'),
        ("visit_id", '{"id":1}'),
        ("display_time", "1767571200000"),
        ("campaign", "false"),
    ),
    numbers=(("ad_id", "1e3"), ("campaign", "12")),
    other=("campaign", ('"conflict-1"', '"conflict-2"')),
)


@dataclass(frozen=True, kw_only=True)
class Displays:
    """The ads displayed in the visits that start in one hour, ordered by arrival."""

    event_ms: Ints
    arrival_ms: Ints
    zone: Ints
    values: dict[str, Texts]
    shape: ClassVar[Shape] = DISPLAY

    def times(self, rows: Ints | slice, moments: Ints) -> Texts:
        return local_time(moments, self.zone[rows])

    def changed(
        self, rows: Ints, changes: Sequence[FieldChange] = (), extra: str | None = None, inner: str | None = None
    ) -> Texts:
        """Render some displays without line feed; there is no object within a display."""
        values = {name: column.take(pa.array(rows)) for name, column in self.values.items()}
        values[DISPLAY.time] = self.times(rows, self.event_ms[rows])
        pairs = [pair(name, values[name], changes) for name in DISPLAY.required]
        return braces(pairs + constant(extra, len(rows)))


def displays_of(spec: SimulationSpec, hour: int, visits: Visits, pools: Pools) -> Displays:
    """Simulates the displays in the visits that start in an hour of the span, 0 being its first."""
    draw = np.random.default_rng([spec.seed, 5, hour])
    count = len(visits.zone)
    first_ms = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first_ms, visits.session, visits.event_ms)
    named = pc.not_equal(visits.sessions["ad_id"], "null").to_numpy(zero_copy_only=False)
    clicks = np.flatnonzero(named & (draw.random(count) >= _LOST))
    again = clicks[draw.random(len(clicks)) < _AGAIN]
    ignored = np.flatnonzero(draw.random(count) < _NOT_CLICKED)
    session = np.concatenate([clicks, again, ignored])
    moments = np.concatenate(
        [
            first_ms[clicks] - _before(draw, len(clicks)),
            first_ms[again] + draw.integers(500, _LONGEST_AFTER_MS, len(again)),
            first_ms[ignored] + draw.integers(500, _LONGEST_AFTER_MS, len(ignored)),
        ]
    )
    end_ms = spec.end_ms(hour)
    moments = np.clip(moments, spec.begin_ms(hour), end_ms - _END_MARGIN_MS)
    delay = np.minimum(-np.log1p(-draw.random(len(moments))) * 1500, 60_000).astype(np.int64)
    # No event names one of the other ads.
    other = pick(pools.other_ads, draw.integers(0, len(pools.other_ads), len(ignored)))
    ads = pa.concat_arrays([visits.sessions["ad_id"].take(pa.array(np.concatenate([clicks, again]))), other])
    arrival_ms = np.minimum(moments + delay, end_ms - 1000)
    order = np.argsort(arrival_ms, kind="stable")
    values = {
        "ad_id": ads,
        "page": pick(pools.pages, draw.integers(0, len(pools.pages), len(moments))),
        "visit_id": visits.sessions["visit_id"].take(pa.array(session)),
        "campaign": pools.campaigns.take(pc.index_in(ads, pa.concat_arrays([pools.ads, pools.other_ads]))),
    }
    return Displays(
        event_ms=moments[order],
        arrival_ms=arrival_ms[order],
        zone=visits.zone[session][order],
        values={name: column.take(pa.array(order)) for name, column in values.items()},
    )


def _before(draw: np.random.Generator, rows: int) -> Ints:
    early = draw.random(rows) < _TOO_EARLY
    longest = HOURS_AHEAD * HOUR_MS
    long_ago = draw.integers(BELONGS_MS + 60_000, longest - 60_000, rows)
    return np.where(early, long_ago, draw.integers(500, _LONGEST_BEFORE_MS, rows))
