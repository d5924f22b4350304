"""Tries the detectors on simulated figures: quiet quarters, and seeded faults with their time to detection.

Everything is computed from :mod:`blogdata.simulator.recorded` by the functions that judge a deployment, in seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from random import Random

from blogdata.errors.remedies import Remedy
from blogdata.patterns.observability import flow_interruption_detector, lag_detector, skew_detector, sla_misses_detector
from blogdata.patterns.observability.lag_detector import Position
from blogdata.patterns.observability.reading import FLOW, LAG, SKEW, SLA, Reading
from blogdata.patterns.observability.sla_misses_detector import Delivery, Job
from blogdata.publish.partitions import Grain
from blogdata.publish.watch import Flow, Layer, Skew
from blogdata.simulator.recorded import Blog, RecordedHour, hours

HOUR = timedelta(hours=1)
PROMISE = timedelta(hours=2)
"""How long after its end an hour of the simulated dataset is published at the latest."""
TICK = timedelta(minutes=10)
"""How often the detectors are read in the trials."""
FAULTS = 200
"""Number of seeded faults of each kind."""
BLOGS = tuple(
    Blog(seed=seed, rows=rows, growth=growth)
    for seed, (rows, growth) in enumerate(
        [(0.6, 0.0), (6.0, 0.01), (40.0, 0.03), (300.0, 0.0), (300.0, 0.05), (4000.0, 0.02), (4000.0, -0.01)]
    )
)
"""The blogs, from one with a visitor every few hours to one with a thousand an hour."""
BUSY = BLOGS[5:]
"""The blogs whose hours have enough rows to be compared."""
ENOUGH = 1000
"""Rows of an hour that a fault of its volume or its keys begins in."""
_LEARNED = 6 * 7 * 24
"""Hours of history before a fault: six weeks."""


@dataclass(frozen=True, kw_only=True)
class FaultKind:
    """A kind of fault.

    Args:
        detector: Name of the detector that finds it.
        fault: What happens, in a few words.
        within: Stated bound of the time to detection, in words.
    """

    detector: str
    fault: str
    within: str


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One seeded fault and what the detector said.

    Args:
        found_after: Time from the begin of the fault to its detection; None: not found within the bound.
        false_alarms: Readings that stood before the fault began, or named what was not at fault.
    """

    found_after: timedelta | None
    false_alarms: int


@dataclass(frozen=True, kw_only=True)
class Score:
    """The trials of one kind of fault."""

    kind: FaultKind
    trials: Sequence[Trial]

    @property
    def found(self) -> int:
        """How many faults were found within the bound."""
        return sum(trial.found_after is not None for trial in self.trials)

    @property
    def recall(self) -> float:
        """Share of the faults that were found."""
        return self.found / len(self.trials)

    @property
    def precision(self) -> float:
        """Share of the alarms that were faults."""
        alarms = self.found + sum(trial.false_alarms for trial in self.trials)
        return self.found / alarms if alarms else 0.0

    @property
    def times(self) -> list[timedelta]:
        """Times to detection, in order."""
        return sorted(trial.found_after for trial in self.trials if trial.found_after is not None)


@dataclass(frozen=True, kw_only=True)
class Quiet:
    """How often a detector was read in quiet quarters, and how often it raised an alarm."""

    detector: str
    readings: int
    alarms: int


@cache
def recorded(blog: Blog) -> tuple[RecordedHour, ...]:
    """Return the figures of a blog."""
    return tuple(hours(blog))


def quiet_quarters() -> list[Quiet]:
    """Read every detector through the quarter of every blog, and count its alarms."""
    found = []
    for detector, alarms in _QUIET.items():
        listed = [alarm for blog in BLOGS for alarm in alarms(blog)]
        found.append(Quiet(detector=detector, readings=len(listed), alarms=sum(listed)))
    return found


def scores(trials: Mapping[FaultKind, Callable[[Random], Trial]]) -> list[Score]:
    """Try every kind of fault, each by its trial."""
    return [
        Score(kind=kind, trials=[trial(Random(f"{kind.fault} {number}")) for number in range(FAULTS)])
        for kind, trial in trials.items()
    ]


def _came(figures: Sequence[RecordedHour]) -> list[datetime]:
    """When data came: hours without rows are flagged, and late rows land with the next hour."""
    return [hour.landed_at for hour in figures if hour.rows]


def _flow(came: Sequence[datetime], now: datetime) -> Reading:
    return flow_interruption_detector.detect("visits", Flow(layer=Layer.STORAGE), came, least=HOUR + PROMISE, now=now)


def _quiet_flow(blog: Blog) -> Iterator[bool]:
    figures, random = recorded(blog), Random(blog.seed)
    came = _came(figures)
    for hour in figures[::4]:
        yield _flow(came, hour.start + 4 * HOUR * random.random()).stands


def _quiet_skew(blog: Blog) -> Iterator[bool]:
    figures = recorded(blog)
    rows = {hour.key: hour.rows + hour.late for hour in figures}
    volumes = skew_detector.volumes(rows, rows, grain=Grain.HOUR, tolerance=_tolerance())
    yield from (bool(one.verdict) for one in volumes)
    counts = {hour.key: hour.buckets for hour in figures}
    yield from (bool(one.verdict) for one in skew_detector.unevenness(counts, counts))
    daily: dict[str, int] = {}
    for key, count in rows.items():
        daily[key[:10]] = daily.get(key[:10], 0) + count
    yield from (
        bool(one.verdict) for one in skew_detector.volumes(daily, daily, grain=Grain.DAY, tolerance=_tolerance())
    )


def _quiet_lag(blog: Blog) -> Iterator[bool]:
    figures, random = recorded(blog), Random(blog.seed)
    for place in range(2, len(figures)):
        now = figures[place].start + HOUR * random.random()
        yield _lag(figures[place - 2 : place + 1], now).stands


def _quiet_sla(blog: Blog) -> Iterator[bool]:
    figures, random = recorded(blog), Random(blog.seed)
    for place in range(48, len(figures), 4):
        now = figures[place].start + HOUR * random.random()
        yield _sla(figures[place - 48 : place], now).stands


def _tolerance() -> float:
    tolerance = Skew().tolerance
    assert tolerance is not None
    return tolerance


@dataclass(frozen=True, kw_only=True)
class _Unread:
    """A source of offsets: the landed hours that are not published."""

    figures: Sequence[RecordedHour]
    now: datetime
    unit = "landed hours"
    remedy = Remedy("run it")

    def positions(self) -> Sequence[Position]:
        return [
            Position(partition=hour.key, behind=1, since=hour.landed_at)
            for hour in self.figures
            if hour.landed_at <= self.now < hour.published_at
        ]


def _lag(figures: Sequence[RecordedHour], now: datetime) -> Reading:
    return lag_detector.detect("visits", [_Unread(figures=figures, now=now)], within=PROMISE, now=now)


def _sla(figures: Sequence[RecordedHour], now: datetime) -> Reading:
    """Judge the hours that became due within a day, with the jobs before them as history."""
    due = [hour for hour in figures[-26:] if hour.start + HOUR + PROMISE <= now or hour.published_at <= now]
    done = [hour for hour in figures if hour.published_at <= now]
    return sla_misses_detector.detect(
        "visits",
        [
            Delivery(
                partition=hour.key,
                ended=hour.start + HOUR,
                input_at=hour.landed_at if hour.landed_at <= now else None,
                published_at=hour.published_at if hour.published_at <= now else None,
                waits_for="landing.visits",
            )
            for hour in due
        ],
        promise=PROMISE,
        now=now,
        jobs=[Job(name=hour.key, rows=hour.rows, seconds=hour.seconds) for hour in done],
        newest=sum(hour.published_at > now - timedelta(days=1) for hour in done),
    )


def _place(random: Random, blogs: Sequence[Blog] = BLOGS, rows: int = 0) -> tuple[tuple[RecordedHour, ...], int]:
    """Choose a blog, and an hour of it after six weeks that has so many rows."""
    figures = recorded(random.choice(blogs))
    while True:
        place = random.randrange(_LEARNED, len(figures) - 80)
        if figures[place].rows >= rows:
            return figures, place


def _ticks(random: Random, begin: datetime, bound: timedelta) -> Iterator[datetime]:
    """Read the detector every so often from the begin of a fault to a tick after its bound."""
    phase = random.random()
    yield from (begin + TICK * (number + phase) for number in range(int(bound / TICK) + 2))


def _silence(random: Random) -> Trial:
    """Nothing lands any more; what is found must be found within the bound that the reading names."""
    figures, place = _place(random)
    came = _came(figures)
    begin = figures[place].start + HOUR * random.random()
    left = came[: bisect_right(came, begin)]
    before = [_flow(came, begin - timedelta(hours=hours_ago)).stands for hours_ago in range(1, 25, 4)]
    bound = timedelta(seconds=_flow(left, begin).bound)
    for now in _ticks(random, begin, bound):
        if _flow(left, now).stands:
            return Trial(found_after=now - begin, false_alarms=sum(before))
    return Trial(found_after=None, false_alarms=sum(before))


def _volume(random: Random, factor: Callable[[Random], float]) -> Trial:
    """The rows of one to six hours are multiplied; an hour is judged when it is published."""
    figures, place = _place(random, BUSY, ENOUGH)
    rows = {hour.key: hour.rows for hour in figures}
    times = factor(random)
    faulty = [hour.key for hour in figures[place : place + random.randint(1, 6)]]
    altered = {key: round(count * times) if key in faulty else count for key, count in rows.items()}
    # The week before, and the same hours in the weeks after: a fault must not become the norm.
    others = [hour.key for hour in figures[place - 24 : place]]
    others += [hour.key for hour in figures[place + len(faulty) : place + len(faulty) + 24]]
    others += [hour.key for hour in figures[place + 168 : place + 168 + len(faulty)]]
    found = skew_detector.volumes(altered, {*faulty, *others}, grain=Grain.HOUR, tolerance=_tolerance())
    wrong = sum(one.partition in others for one in found if one.verdict)
    hit = [one.partition for one in found if one.verdict and one.partition in faulty]
    if not hit:
        return Trial(found_after=None, false_alarms=wrong)
    hour = figures[place + faulty.index(min(hit))]
    return Trial(found_after=hour.published_at - figures[place].start - HOUR, false_alarms=wrong)


def _times(low: float, high: float) -> Callable[[Random], Trial]:
    """Return the trial of a volume that is multiplied by a number in a range."""
    return lambda random: _volume(random, lambda chance: chance.uniform(low, high))


def _hot_key(random: Random) -> Trial:
    """One visitor, a robot, brings as many rows as half of the others or more."""
    figures, place = _place(random, BUSY, ENOUGH)
    counts = {hour.key: list(hour.buckets) for hour in figures[place - 400 : place + 25]}
    faulty = figures[place].key
    counts[faulty][random.randrange(16)] += round(sum(counts[faulty]) * random.uniform(0.5, 2.0))
    others = [hour.key for hour in figures[place - 24 : place + 25] if hour.start != figures[place].start]
    found = skew_detector.unevenness(counts, {faulty, *others})
    wrong = sum(one.partition in others for one in found if one.verdict)
    hit = any(one.partition == faulty for one in found if one.verdict)
    late = figures[place].published_at - figures[place].start - HOUR
    return Trial(found_after=late if hit else None, false_alarms=wrong)


def _stall(random: Random) -> Trial:
    """The reader is not run any more."""
    return _unread(random, lambda hour, begin: hour.published_at >= begin)


def _one_stuck(random: Random) -> Trial:
    """The reader skips one hour and reads all others."""
    chosen: list[datetime] = []

    def stuck(hour: RecordedHour, begin: datetime) -> bool:
        if hour.published_at >= begin and not chosen:
            chosen.append(hour.start)
        return hour.start in chosen

    return _unread(random, stuck)


def _unread(random: Random, stalls: Callable[[RecordedHour, datetime], bool]) -> Trial:
    figures, place = _place(random)
    begin = figures[place].start + HOUR * random.random()
    never = figures[-1].published_at + timedelta(days=30)
    altered = [
        replace(hour, published_at=never) if stalls(hour, begin) else hour for hour in figures[place - 26 : place + 70]
    ]
    before = [_lag(altered, begin - HOUR * hours_ago).stands for hours_ago in range(1, 25, 4)]
    first = min(hour.landed_at for hour in altered if hour.published_at == never)
    for now in _ticks(random, first, PROMISE):
        if _lag(altered, now).stands:
            return Trial(found_after=now - first, false_alarms=sum(before))
    return Trial(found_after=None, false_alarms=sum(before))


def _slow_job(random: Random) -> Trial:
    """A job takes six minutes and more instead of seconds; the promise is still kept."""
    seconds = random.uniform(360, 2400)
    return _missed(random, lambda hour: _published(hour, hour.landed_at, seconds), {sla_misses_detector.SLOW_JOB}, BUSY)


def _not_started(random: Random) -> Trial:
    """The input is there, and its job is started hours late."""
    late = HOUR * random.uniform(2.5, 8)
    return _missed(
        random,
        lambda hour: _published(hour, hour.landed_at + late, hour.seconds),
        {sla_misses_detector.JOB_LATE},
        BLOGS,
    )


def _late_producer(random: Random) -> Trial:
    """The input comes hours late, and the job is as fast as ever."""
    late = HOUR * random.uniform(2.5, 8)

    def alter(hour: RecordedHour) -> RecordedHour:
        return _published(replace(hour, landed_at=hour.landed_at + late), hour.landed_at + late, hour.seconds)

    return _missed(random, alter, {sla_misses_detector.INPUT_LATE}, BLOGS)


def _published(hour: RecordedHour, begin: datetime, seconds: float) -> RecordedHour:
    return replace(hour, seconds=seconds, published_at=begin + timedelta(seconds=seconds))


def _missed(
    random: Random, alter: Callable[[RecordedHour], RecordedHour], verdicts: set[str], blogs: Sequence[Blog]
) -> Trial:
    """Alter one hour; only the right verdict, within the promise and a tick, counts as found."""
    figures, place = _place(random, blogs)
    altered = [*figures[place - 100 : place], alter(figures[place]), *figures[place + 1 : place + 12]]
    ended = figures[place].start + HOUR
    before = sum(_sla(altered[:100], ended - HOUR * hours_ago).stands for hours_ago in range(1, 25, 4))
    for now in _ticks(random, ended, PROMISE):
        reading = _sla(altered, now)
        if reading.stands:
            right = reading.verdict in verdicts
            return Trial(found_after=now - ended if right else None, false_alarms=before + (not right))
    return Trial(found_after=None, false_alarms=before)


_QUIET: dict[str, Callable[[Blog], Iterator[bool]]] = {
    FLOW: _quiet_flow,
    SKEW: _quiet_skew,
    LAG: _quiet_lag,
    SLA: _quiet_sla,
}
_LEARNED_BOUND = "the learned bound"
_PUBLICATION = "the last hour's publication"
_PROMISED = "the promise"
TRIALS: Mapping[FaultKind, Callable[[Random], Trial]] = {
    FaultKind(detector=FLOW, fault="nothing lands any more", within=_LEARNED_BOUND): _silence,
    FaultKind(detector=SKEW, fault="0 to 25 % of the rows, for 1 to 6 hours", within=_PUBLICATION): _times(0.0, 0.25),
    FaultKind(detector=SKEW, fault="25 to 60 % of the rows, for 1 to 6 hours", within="none"): _times(0.25, 0.6),
    FaultKind(detector=SKEW, fault="3 to 10 times the rows, for 1 to 6 hours", within=_PUBLICATION): _times(3.0, 10.0),
    FaultKind(detector=SKEW, fault="one key with 33 to 67 % of the rows", within=_PUBLICATION): _hot_key,
    FaultKind(detector=LAG, fault="the reader is not run", within=_PROMISED): _stall,
    FaultKind(detector=LAG, fault="the reader skips one partition", within=_PROMISED): _one_stuck,
    FaultKind(detector=SLA, fault="the job starts 2.5 to 8 hours late", within=_PROMISED): _not_started,
    FaultKind(detector=SLA, fault="the input comes 2.5 to 8 hours late", within=_PROMISED): _late_producer,
    FaultKind(detector=SLA, fault="the job takes 6 to 40 minutes", within=_PROMISED): _slow_job,
}
"""Each kind of fault and its trial."""
