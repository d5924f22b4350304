"""What a person has selected, by time or by dataset: whether there is anything in it, and what in it waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from blogdata.contract.partitions import Grain, start_of
from blogdata.ledger.faults import by_reason
from blogdata.planning.expired import PartitionExpired
from blogdata.planning.graph import Task
from blogdata.planning.plan import Planner, spanned


@dataclass(frozen=True, kw_only=True)
class Window:
    start: datetime | None
    end: datetime | None

    @classmethod
    def parsed(cls, text: str) -> Window:
        start, end = (datetime.fromisoformat(end) if end else None for end in text.split(".."))
        return cls(start=start, end=end)

    def written(self) -> str:
        return f"{self.start.isoformat() if self.start else ''}..{self.end.isoformat() if self.end else ''}"

    def holds(self, key: str, grain: Grain | None) -> bool:
        """Return whether a partition overlaps the window; always true for a table that is written whole."""
        if grain is None:
            return True
        start = start_of(key, grain)
        return (self.end is None or start < self.end) and (self.start is None or start + grain.length > self.start)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The partitions that a person has selected: those that overlap a window, of some datasets; empty: all."""

    window: Window | None = None
    select: Sequence[str] = ()

    def chosen(self, task: Task) -> bool:
        return not self.select or bool({*self.select} & {*task.datasets})

    def holds(self, task: Task, key: str) -> bool:
        return self.chosen(task) and (self.window is None or self.window.holds(key, task.grain))

    def require_kept(self, planner: Planner) -> bool:
        """Return whether any landed, published or stale partition is selected; refuse to select expired ones only.

        A table that is written whole lies in every span, so it counts there only if it is named.
        """
        selected, refused = 0, list[PartitionExpired]()
        for task in planner.graph.tasks:
            if task.grain is None and self.window and not self.select:
                continue
            keys = {key for key in planner.known(task) if self.holds(task, key)}
            selected += len(keys)
            refused += planner.expired(task, keys).values()
        if refused and len(refused) == selected:
            raise refused[-1]
        return selected > 0

    def waiting(self, planner: Planner) -> Iterator[tuple[str, str]]:
        """Describe what waits for a person, by reason; each with the line by which a failed step names it."""
        for dataset, errors in planner.held().items():
            task = planner.graph.task_of(dataset)
            held = {key: error for key, error in sorted(errors.items()) if self.holds(task, key)}
            for why, faults in by_reason(held).items():
                span = spanned([*faults], task.grain)
                yield f"{dataset} {span} waits for a person: {why}", f"{task.main}: {why}"
