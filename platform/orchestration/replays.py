"""Replays that the daemon carries out: asked for once, kept in the event log, done in one run.

What is left of a replay is not remembered but derived: a computation of its plan is done when each of its partitions
has been published since the replay was asked for, from what those before it have published. A daemon that dies in its
middle, a run that fails and is repeated by a person, and a partition that somebody else ran in between are therefore
all the same to it; one that somebody else ran too early, from what was there before the replay, is not done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from evidence.events import Event, EventLog
from lake.commit import WHOLE_TABLE, Entry
from lake.lake import Lake
from planning.plan import Planned

REPLAY = "replay"
DONE = "replay_done"
TAG = "blogdata/replay"
"""Tag of a run: the replay it belongs to."""
_NEVER = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class ReplayRun:
    """One computation of a replay: its datasets, the main one first, and partitions; no keys: written whole."""

    datasets: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A replay that was asked for.

    Args:
        identity: Of the event.
        dataset: What was asked for.
        runs: The plan, in order.
        versions: Dataset to its table version when the replay was asked for.
    """

    identity: str
    dataset: str
    runs: Sequence[ReplayRun]
    versions: dict[str, int]

    def left(self, events: EventLog) -> list[ReplayRun]:
        """Find what is not done, in order, with the partitions of the plan."""
        first = cache(lambda dataset: self._first(dataset, events))
        earlier: dict[str, list[str]] = {}
        left = []
        for run in self.runs:
            keys = run.keys or (WHOLE_TABLE,)
            done = True
            for dataset in run.datasets:
                entries = events.publications(dataset, keys)
                done = done and self._is_new(dataset, keys, entries) and _has_read(entries.values(), earlier, first)
                earlier.setdefault(dataset, []).extend(keys)
            if not done:
                left.append(run)
        return left

    def _is_new(self, dataset: str, keys: Sequence[str], entries: Mapping[str, Entry]) -> bool:
        before = self.versions.get(dataset, -1)
        return all(key in entries and entries[key].version > before for key in keys)

    def _first(self, dataset: str, events: EventLog) -> dict[str, int]:
        # Not the newest: a run that has read the replay stays done, whatever is published after it.
        versions: dict[str, int] = {}
        for entry in events.history(dataset):
            if entry.version > self.versions.get(dataset, -1):
                versions.setdefault(entry.partition, entry.version)
        return versions


def _has_read(
    entries: Iterable[Entry], earlier: Mapping[str, Sequence[str]], first: Callable[[str], Mapping[str, int]]
) -> bool:
    """Tell whether publications have read what the runs before theirs have published."""
    read = {(above, version) for entry in entries for above, version in entry.inputs.items()}
    return all(version >= first(above).get(key, _NEVER) for above, version in read for key in earlier.get(above, ()))


def ask(lake: Lake, events: EventLog, dataset: str, runs: Sequence[Planned], run_id: str) -> None:
    """Keep a replay for the daemon.

    Args:
        lake: The tables' root.
        events: The event log.
        dataset: What was asked for.
        runs: The plan.
        run_id: The run that asks.
    """
    plan = [{"datasets": list(run.datasets), "keys": list(run.keys)} for run in runs]
    versions = lake.versions(sorted({name for run in runs for name in run.datasets}))
    # The run that asks may be repeated: it asks for the same replay, not for a second one.
    events.append(
        [
            Event(
                kind=REPLAY,
                dataset=dataset,
                run_id=run_id,
                identity=f"replay-{run_id}",
                payload={"runs": plan, "versions": versions},
            )
        ]
    )


def pending(events: EventLog) -> list[Replay]:
    """Give the replays that have not been closed, oldest first."""
    notes = events.notes(REPLAY, DONE)
    closed = {note.identity for note in notes if note.kind == DONE}
    found: dict[str, Replay] = {}
    for note in notes:
        if note.identity is None or note.payload is None or f"{note.identity}-done" in closed:
            continue
        runs = [ReplayRun(datasets=tuple(run["datasets"]), keys=tuple(run["keys"])) for run in note.payload["runs"]]
        found.setdefault(
            note.identity,
            Replay(identity=note.identity, dataset=note.dataset, runs=runs, versions=note.payload["versions"]),
        )
    return list(found.values())


def close(events: EventLog, replay: Replay) -> None:
    """Note that nothing is left of a replay."""
    events.append([Event(kind=DONE, dataset=replay.dataset, identity=f"{replay.identity}-done")])
