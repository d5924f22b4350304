"""What has to run: the partitions whose input is newer than what was published from it, and what follows from a replay.

The command line, the sensors and a person in the UI ask the same functions, so they never disagree. Everything
is read from the landing zone and the event log; no table is read and no JVM is started.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from assets.held import HELD, held_hours
from assets.staleness import (
    devices_are_stale,
    first_delivery,
    landed,
    open_periods,
    stale_arrivals,
    stale_event_hours,
    stale_executions,
    stale_for_users,
    stale_late_hours,
    stale_periods,
    stale_same_hours,
    stale_user_days,
    whole_is_stale,
)
from orchestration import replay_planner
from orchestration.finality import lookback_of
from orchestration.replay_planner import Link, Plan, Stage, Wanted
from orchestration.shares import DEAD_LETTERS
from patterns.core.commit import WHOLE_TABLE
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog
from patterns.core.partitions import Grain, coarser, ends_of, parse_keys
from patterns.idempotency import stateful_merger
from patterns.idempotency.stateful_merger import ReplayTooLong
from quality.contracts import CONTRACTS

STALE = "its input changed"
"""Why a partition runs that nobody asked for."""
DAILY = ("gold.visits_cube_daily", "gold.page_stats", "gold.referral_stats")
WEEKLY = ("gold.visits_cube_weekly", "gold.visits_weekly")
STAGES = (
    Stage(name="users delivered", datasets=("bronze.users",), grain=Grain.DAY),
    Stage(name="users", datasets=("silver.users",), grain=None),
    Stage(name="devices", datasets=("bronze.devices", "silver.devices"), grain=None),
    Stage(name="arrivals", datasets=("bronze.visits", "bronze.dead_letters", "silver.late_visits"), grain=Grain.HOUR),
    Stage(name="watermarks moved", datasets=("silver.late_visits",), grain=Grain.HOUR),
    Stage(
        name="event hours",
        datasets=("silver.visits", "silver.visit_conflicts", "silver.visits_enriched"),
        grain=Grain.HOUR,
    ),
    Stage(name="days", datasets=DAILY, grain=Grain.DAY),
    Stage(name="weeks", datasets=WEEKLY, grain=Grain.WEEK),
    Stage(name="users today", datasets=("silver.users_current",), grain=Grain.DAY),
)
"""Everything from the landing zone to gold, in the order in which it must run."""


def _whole(dataset: str, above: str) -> Callable[[Path, EventLog], Sequence[str]]:
    return lambda landing, events: [WHOLE_TABLE] if whole_is_stale(events, dataset, above) else []


def _same_hours(dataset: str, above: str) -> Callable[[Path, EventLog], Sequence[str]]:
    return lambda landing, events: stale_same_hours(events, dataset, above)


def _periods(dataset: str, grain: Grain) -> Callable[[Path, EventLog], Sequence[str]]:
    return lambda landing, events: stale_periods(events, dataset, grain)


STALENESS: Mapping[str, Callable[[Path, EventLog], Sequence[str]]] = {
    "bronze.users": stale_user_days,
    "silver.users": _whole("silver.users", "bronze.users"),
    "silver.users_current": lambda landing, events: stale_executions(events),
    "bronze.devices": lambda landing, events: [WHOLE_TABLE] if devices_are_stale(landing, events) else [],
    "silver.devices": _whole("silver.devices", "bronze.devices"),
    "bronze.visits": stale_arrivals,
    "bronze.dead_letters": _same_hours("bronze.dead_letters", "bronze.visits"),
    "silver.late_visits": lambda landing, events: sorted(
        {*stale_same_hours(events, "silver.late_visits", "bronze.visits"), *stale_late_hours(events)}
    ),
    "silver.visits": lambda landing, events: stale_event_hours(events),
    "silver.visit_conflicts": _same_hours("silver.visit_conflicts", "silver.visits"),
    "silver.visits_enriched": lambda landing, events: sorted(
        {*stale_same_hours(events, "silver.visits_enriched", "silver.visits"), *stale_for_users(events)}
    ),
    **{dataset: _periods(dataset, Grain.DAY) for dataset in DAILY},
    **{dataset: _periods(dataset, Grain.WEEK) for dataset in WEEKLY},
}
"""Dataset to what of it is stale now."""
LANDED = {
    "bronze.users": ("users", Grain.DAY),
    "bronze.devices": ("devices", Grain.DAY),
    "bronze.visits": ("visits", Grain.HOUR),
}


def _same(events: EventLog, keys: Collection[str]) -> dict[str, str]:
    return {key: key for key in keys}


def _table(events: EventLog, keys: Collection[str]) -> dict[str, str]:
    return {WHOLE_TABLE: min(keys)}


def _events_of(events: EventLog, keys: Collection[str]) -> dict[str, str]:
    touched = {key: key for key in keys}
    for key, entry in sorted(events.publications("bronze.visits", keys).items()):
        for hour, *_ in entry.breakdowns["event_hours"]:
            if hour is not None:
                touched.setdefault(hour, key)
    return touched


def _enriched_since(events: EventLog, keys: Collection[str]) -> dict[str, str]:
    first = min(keys)
    # Those of the first delivery have been there since they registered.
    reaches_all = first <= (first_delivery(events.publications("bronze.users")) or first)
    hours = events.publications("silver.visits_enriched")
    return {hour: first for hour in hours if reaches_all or hour[:10] >= first}


def _all_enriched(events: EventLog, keys: Collection[str]) -> dict[str, str]:
    return dict.fromkeys(events.publications("silver.visits_enriched"), "")


def _later(dataset: str) -> Callable[[EventLog, Collection[str]], dict[str, str]]:
    """Executions build on one another: all that came later run again, as far as the contract allows."""

    def reach(events: EventLog, keys: Collection[str]) -> dict[str, str]:
        todo = stateful_merger.due(CONTRACTS[dataset], events.executions(dataset), keys)
        return {key: f"of {min(keys)}" for key in todo}

    return reach


def _within(dataset: str, grain: Grain) -> Callable[[EventLog, Collection[str]], dict[str, str]]:
    def reach(events: EventLog, keys: Collection[str]) -> dict[str, str]:
        periods = {coarser(key, Grain.HOUR, grain): key for key in sorted(keys, reverse=True)}
        if lookback_of(CONTRACTS[dataset]) is None:
            return periods
        newest = coarser(max([*keys, *events.publications("silver.visits_enriched")]), Grain.HOUR, grain)
        return {key: periods[key] for key in open_periods(dataset, periods, events.publications(dataset), newest)}

    return reach


LINKS = (
    Link(above="bronze.users", below="silver.users", reach=_table),
    Link(above="bronze.users", below="silver.users_current", reach=_same),
    Link(above="silver.users_current", below="silver.users_current", reach=_later("silver.users_current")),
    Link(above="bronze.users", below="silver.visits_enriched", reach=_enriched_since),
    Link(above="silver.users", below="silver.visits_enriched", reach=_all_enriched, asked_only=True),
    Link(above="bronze.devices", below="silver.devices", reach=_table),
    # A visit keeps what was known of its device when it was enriched, unless a person wants it otherwise.
    Link(above="silver.devices", below="silver.visits_enriched", reach=_all_enriched, asked_only=True),
    Link(above="bronze.visits", below="bronze.dead_letters", reach=_same),
    Link(above="bronze.visits", below="silver.late_visits", reach=_same),
    Link(above="bronze.visits", below="silver.visits", reach=_events_of),
    Link(above="silver.visits", below="silver.visit_conflicts", reach=_same),
    Link(above="silver.visits", below="silver.visits_enriched", reach=_same),
    *[Link(above="silver.visits_enriched", below=dataset, reach=_within(dataset, Grain.DAY)) for dataset in DAILY],
    *[Link(above="silver.visits_enriched", below=dataset, reach=_within(dataset, Grain.WEEK)) for dataset in WEEKLY],
)
"""What has read what, in the order of the stages."""


def late(events: EventLog) -> Wanted:
    """Give what late rows, and late users, make stale in silver; what is above follows by its automation."""
    asked = {
        "silver.visits": dict.fromkeys(stale_event_hours(events), STALE),
        "silver.visits_enriched": dict.fromkeys(stale_for_users(events), STALE),
    }
    return replay_planner.spread(LINKS, asked, events, within=stage_of("silver.visits").datasets)


def stale(stage: Stage, landing: Path, events: EventLog, *, accepted: Collection[str] = ()) -> Wanted:
    """Give what of a stage must run, decided when its turn comes: the stages before change it.

    Args:
        stage: One of the stages.
        landing: The landing zone.
        events: The event log.
        accepted: Guards that a person has lifted: what waits for their word runs as well.

    Returns:
        Its datasets' partitions; those that only follow from an earlier dataset of the stage are among them.

    Raises:
        ReplayTooLong: More executions would follow than a contract of the stage allows.
    """
    asked = {dataset: dict.fromkeys(STALENESS[dataset](landing, events), STALE) for dataset in stage.datasets}
    if HELD in asked:
        asked[HELD].update(dict.fromkeys(_released(events, accepted), STALE))
    return replay_planner.spread(LINKS, _of_mains(asked), events, within=stage.datasets)


def known(stage: Stage, landing: Path, events: EventLog, *, accepted: Collection[str] = ()) -> set[str]:
    """Give all partitions a stage could run: what has landed for it, what it has published, and what is stale.

    Args:
        stage: One of the stages.
        landing: The landing zone.
        events: The event log.
        accepted: Guards that a person has lifted: what waits for their word is among them.
    """
    found = set(_released(events, accepted)) if HELD in stage.datasets else set()
    for dataset in stage.datasets:
        found.update(events.publications(dataset))
        found.update(STALENESS[dataset](landing, events))
        if dataset in LANDED:
            keys = {partition.key for partition in landed(landing, *LANDED[dataset])}
            found.update(keys if stage.grain is not None else {WHOLE_TABLE} if keys else set())
    return found


def _released(events: EventLog, accepted: Collection[str]) -> Collection[str]:
    return held_hours(events) if DEAD_LETTERS in accepted else ()


def chosen(stage: Stage, select: Collection[str]) -> list[str]:
    """Give the datasets of a stage that run when a person names some, and those that appear with one of them.

    Args:
        stage: The stage.
        select: Names of datasets, of this stage or of others; empty stands for all.
    """
    mains = {_main(name) for name in select}
    return [name for name in stage.datasets if not select or _main(name) in mains]


def _main(name: str) -> str:
    return (CONTRACTS[name].appears_with if name in CONTRACTS else None) or name


def _of_mains(asked: Wanted) -> Wanted:
    """Ask the dataset that publishes it for what is asked of one that appears with it; its link leads back."""
    mains: dict[str, dict[str, str]] = {}
    for dataset, keys in asked.items():
        for key, why in keys.items():
            mains.setdefault(_main(dataset), {}).setdefault(key, why)
    return mains


def is_first(stage: Stage) -> bool:
    """Tell a stage from a second one of the same datasets, which runs only what the first one brought to light."""
    return any(stage_of(dataset) is stage for dataset in stage.datasets)


def stage_of(dataset: str) -> Stage:
    """Give the stage a dataset belongs to."""
    return next(stage for stage in STAGES if dataset in stage.datasets)


def named(dataset: str, partitions: str | None, landing: Path, events: EventLog) -> Sequence[str]:
    """Give the partitions a person names.

    Args:
        dataset: Whose.
        partitions: As :func:`parse_keys` reads it, or `all`; None for a dataset that is written whole. A range
            `first..last` stands for what lies in it, any other key must be there.
        landing: The landing zone.
        events: The event log.

    Returns:
        Their keys.

    Raises:
        ConfigurationError: The dataset has none of that name.
    """
    stage = stage_of(dataset)
    there = sorted(known(stage, landing, events))
    if stage.grain is None and partitions:
        raise ConfigurationError(
            what=f"{dataset} is written whole", where="partitions", next_step="name the dataset only"
        )
    if stage.grain is not None and not partitions:
        raise ConfigurationError(
            what=f"which partitions of {dataset}?",
            where="partitions",
            next_step=f"name some, like {there[-1] if there else '2026-01-05'}, first..last, or all",
        )
    if not there:
        raise ConfigurationError(
            what=f"{dataset} has never been published, and nothing has landed for it",
            where=dataset,
            next_step="land something first: blogdata land --help",
        )
    if stage.grain is None or partitions is None or partitions == "all":
        return there
    chosen, unknown = set[str](), set[str]()
    for part in partitions.split(","):
        if ".." in part:
            # Looked up and not listed: a person may name a range that has no end.
            begins, ends = ends_of(part, stage.grain)
            found = {key for key in there if begins <= key <= ends}
            unknown |= set() if found else {f"{begins}..{ends}"}
        else:
            keys = set(parse_keys(part, stage.grain))
            found = keys & set(there)
            unknown |= keys - found
        chosen |= found
    if unknown:
        missing = sorted(unknown)
        raise ConfigurationError(
            what=f"{dataset} has no partition {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}",
            where="partitions",
            next_step=f"choose from {there[0]} to {there[-1]} ({len(there)} partitions)",
        )
    return sorted(chosen)


def replay(asked: Wanted, events: EventLog) -> Plan:
    """Plan the runs after which everything agrees again with partitions that run again.

    Args:
        asked: What runs again, and why.
        events: The event log.

    Returns:
        The runs, in order, without those of a dataset of which too many executions would follow. A watermark that a
        replay moves shows only when it has run: `blogdata run` then finds the hours whose late rows it decides.
    """
    refused: dict[str, ReplayTooLong] = {}
    while True:
        links = [link for link in LINKS if link.below not in refused]
        begin = {dataset: keys for dataset, keys in _of_mains(asked).items() if dataset not in refused}
        try:
            wanted = replay_planner.spread(links, begin, events)
        except ReplayTooLong as error:
            refused[error.where] = error
        else:
            runs = [run for stage in STAGES if is_first(stage) for run in replay_planner.cut(stage, wanted)]
            return Plan(runs=runs, refused=tuple(refused.values()))


def outstanding(landing: Path, events: EventLog) -> Plan:
    """Plan the runs that `blogdata run` would do now, as far as can be told before the first of them has ended.

    Hours that wait for a person are not among them; what is said of them is.
    """
    asked = {dataset: dict.fromkeys(find(landing, events), STALE) for dataset, find in STALENESS.items()}
    planned = replay(asked, events)
    waiting = {str(fault): fault for fault in held_hours(events).values()}
    return replace(planned, refused=(*planned.refused, *waiting.values()))
