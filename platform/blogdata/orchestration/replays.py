"""Replays that the daemon executes: requested once, stored in the event log, done in one run.

The remaining work of a replay is derived, not stored. A computation of its plan is done when each of its partitions
was published after the request, from the publications of the computations before it. The replay therefore survives a
daemon that dies halfway, a failed run that a person repeats, and a partition that another run computed meanwhile. A
partition that another run computed too early, from inputs older than the replay, is not done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from blogdata.evidence.event import Event
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.planning.plan import Planned

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
    """A requested replay: its planned computations, in order, and the versions of their tables at the request."""

    identity: str
    dataset: str
    runs: Sequence[ReplayRun]
    versions: dict[str, int]

    def left(self, events: EventLog) -> list[ReplayRun]:
        """List the computations that are not done, in order, each with all its partitions."""
        since = Since(events, self.versions)
        earlier: dict[str, list[str]] = {}
        left = []
        for run in self.runs:
            keys = run.keys or (WHOLE_TABLE,)
            if since.done(run.datasets, keys, earlier) != {*keys}:
                left.append(run)
            for dataset in run.datasets:
                earlier.setdefault(dataset, []).extend(keys)
        return left


class Since:
    """What was computed since something was asked for again."""

    def __init__(self, events: EventLog, versions: Mapping[str, int]) -> None:
        self._events = events
        self._versions = versions
        self._first: dict[str, dict[str, int]] = {}

    def done(self, datasets: Sequence[str], keys: Collection[str], earlier: Mapping[str, Collection[str]]) -> set[str]:
        """Return the partitions that were published since, from the publications of all computations before theirs."""
        done = set(keys)
        for dataset in datasets:
            before = self._versions.get(dataset, -1)
            entries = self._events.publications(dataset, done)
            new = {key: entry for key, entry in entries.items() if entry.version > before}
            read = {name for entry in new.values() for name in entry.inputs} & earlier.keys()
            least = {name: self._least(name, earlier[name]) for name in read}
            done = {
                key
                for key, entry in new.items()
                if all(version >= least.get(name, -1) for name, version in entry.inputs.items())
            }
        return done

    def _least(self, dataset: str, keys: Collection[str]) -> int:
        """Return the version of a dataset that has been read by what was computed from all of the partitions."""
        return max((self._first_of(dataset).get(key, _NEVER) for key in keys), default=-1)

    def _first_of(self, dataset: str) -> Mapping[str, int]:
        # The first version after the request, not the newest: a computation that has read it stays done.
        if dataset not in self._first:
            versions: dict[str, int] = {}
            for entry in self._events.history(dataset):
                if entry.version > self._versions.get(dataset, -1):
                    versions.setdefault(entry.partition, entry.version)
            self._first[dataset] = versions
        return self._first[dataset]


def request_replay(lake: Lake, events: EventLog, dataset: str, runs: Sequence[Planned], run_id: str) -> None:
    """Store a replay in the event log for the daemon."""
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
    events.append([Event(kind=DONE, dataset=replay.dataset, identity=f"{replay.identity}-done")])
