"""A partition is stale if it has not read the current pending rows of the partition before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from blogdata.lake.commit import Entry
from blogdata.planning.reaches import Carried
from blogdata.publish.contract import Contract, Edge
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Partitioning

CARRIED = Carried(measure="pending")
CONTRACT = Contract(
    dataset="toy.open",
    description="",
    owner="team:toy",
    columns=(),
    partitioning=Partitioning(column="hour", grain=Grain.HOUR),
)
EDGE = Edge(above="toy.open", below=CONTRACT)


@dataclass
class Published:
    """The commits of a dataset, each with the pending rows of its published hours."""

    commits: list[dict[int, Entry]]

    @classmethod
    def none(cls) -> Published:
        """Start with nothing."""
        return cls(commits=[])

    def commit(self, **left: int) -> Published:
        """Publish some hours as a step does, with the version read; h9=5 leaves 5 pending."""
        pending = {int(name[1:]): digest for name, digest in left.items()}
        read = CARRIED.read(self.published(""), frozenset(map(hour, pending)), Grain.HOUR)
        version = len(self.commits)
        entries = {
            number: Entry(
                dataset="toy.open",
                partition=hour(number),
                version=version,
                rows_in=0,
                rows_out=0,
                reasons={},
                measures={"pending": digest},
                landed=read[hour(number)],
            )
            for number, digest in pending.items()
        }
        return Published(commits=[*self.commits, entries])

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Return the newest publications."""
        return {hour(number): entry for commit in self.commits for number, entry in commit.items()}

    def history(self, dataset: str) -> Sequence[Entry]:
        """Return all publications."""
        return [entry for commit in self.commits for entry in commit.values()]

    def stale(self) -> set[int]:
        """List the stale hours."""
        return {int(key[-2:]) for key in CARRIED.behind(self, EDGE)}  # type: ignore[arg-type]


def hour(number: int) -> str:
    return f"2026-01-05T{number:02d}"


@pytest.fixture
def three() -> Published:
    return Published.none().commit(h9=5, h10=6, h11=7)


def test_other_pending_rows_make_the_next_stale(three: Published) -> None:
    changed = three.commit(h9=4)
    assert changed.stale() == {10}
    assert changed.commit(h10=6).stale() == set()
    assert changed.commit(h10=8).stale() == {11}


def test_the_same_pending_rows_make_nothing_stale(three: Published) -> None:
    assert three.commit(h9=5).stale() == set()
    assert three.commit(h9=4).commit(h9=5).stale() == set()


def test_a_missing_hour_must_close_what_is_pending() -> None:
    gap = Published.none().commit(h9=5, h12=0)
    assert gap.stale() == {10}
    assert gap.commit(h10=3).stale() == {11}
    assert gap.commit(h10=0).stale() == set()


def test_scattered_hours_are_stale_again_in_turn() -> None:
    spread = Published.none().commit(h5=1, h6=1, h7=1, h8=1).commit(h5=2, h8=2)
    assert spread.stale() == {6}
    spread = spread.commit(h6=2)
    assert spread.stale() == {7}
    spread = spread.commit(h7=2)
    assert spread.stale() == {8}
