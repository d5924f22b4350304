"""Replays that the daemon executes: requested once, stored in the event log, done in one run.

The remaining work of a replay is derived, not stored. A computation of its plan is done when each of its partitions
was published after the request, from the publications of the computations before it. The replay therefore survives a
daemon that dies halfway, a failed run that a person repeats, and a partition that another run computed meanwhile. A
partition that another run computed too early, from inputs older than the replay, is not done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from evidence.event import Event
from evidence.events import EventLog
from lake.commit import WHOLE_TABLE, Entry
from lake.lake import Lake
from planning.plan import Planned

REPLAY = "replay"
DONE = "replay_done"
TAG = "blogdata/replay"
"""Tag of a run: id of the replay it belongs to."""
_NEVER = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class ReplayRun:
    """One computation of a replay: datasets, the main one first, and partition keys; no keys for a whole table."""

    datasets: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A requested replay.

    Args:
        identity: Identity of its event.
        dataset: The requested dataset.
        runs: The planned computations, in order.
        versions: Dataset to its table version at the time of the request.
    """

    identity: str
    dataset: str
    runs: Sequence[ReplayRun]
    versions: dict[str, int]

    def left(self, events: EventLog) -> list[ReplayRun]:
        """List the computations that are not done, in order, each with all its partitions."""
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
        # The first version after the request, not the newest: a computation that has read it stays done.
        versions: dict[str, int] = {}
        for entry in events.history(dataset):
            if entry.version > self.versions.get(dataset, -1):
                versions.setdefault(entry.partition, entry.version)
        return versions


def _has_read(
    entries: Iterable[Entry], earlier: Mapping[str, Sequence[str]], first: Callable[[str], Mapping[str, int]]
) -> bool:
    """Return whether the publications have read those of all earlier computations of the replay."""
    read = {(above, version) for entry in entries for above, version in entry.inputs.items()}
    return all(version >= first(above).get(key, _NEVER) for above, version in read for key in earlier.get(above, ()))


def request_replay(lake: Lake, events: EventLog, dataset: str, runs: Sequence[Planned], run_id: str) -> None:
    """Request a replay: store it in the event log for the daemon.

    Args:
        lake: The tables' root.
        events: The event log.
        dataset: The requested dataset.
        runs: The planned computations, in order.
        run_id: Id of the run that requests it.
    """
    plan = [{"datasets": list(run.datasets), "keys": list(run.keys)} for run in runs]
    versions = lake.versions(sorted({name for run in runs for name in run.datasets}))
    # The requesting run may be retried: the same identity makes it the same replay, not a second one.
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


def unfinished(events: EventLog) -> list[Replay]:
    """List the replays that are not closed, oldest first."""
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
    """Record that a replay is complete."""
    events.append([Event(kind=DONE, dataset=replay.dataset, identity=f"{replay.identity}-done")])
