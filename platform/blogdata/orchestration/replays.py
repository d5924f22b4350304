"""What of a replay is done: what was published since it was asked for, from all that it computes above.

A run that is resumed, or that meets partitions which another run has computed meanwhile, does not compute them once
more. A partition that was computed too early, from inputs older than the replay, is not done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from blogdata.evidence.events import EventLog

_NEVER = 2**63 - 1


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
