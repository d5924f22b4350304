"""Times peers in turn, so that other load on the machine affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Size:
    """The amount of measured data.

    Args:
        visits: Rows; None: the standard sizes of each benchmark.
        rounds: How often each peer runs.
        days: Days of history before one more hour.
    """

    visits: int | None
    rounds: int
    days: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way to do the job.

    Args:
        name: Name in the tables.
        run: Does the job once, given the number of the round; timed.
        prepare: Prepares the round; not timed.
    """

    name: str
    run: Callable[[int], object]
    prepare: Callable[[int], object] = lambda number: None


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The ratio of two peers' medians.

    Args:
        over: The numerator's peer.
        under: The denominator's peer.
        value: Quotient of their medians.
    """

    over: str
    under: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """All measurements at one size.

    Args:
        name: The size, for people.
        seconds: Peer to its times in seconds, in the order of the rounds.
        ratios: The comparisons, in order of interest.
        facts: Other facts: rows, checks of the results, times of steps.
    """

    name: str
    seconds: Mapping[str, Sequence[float]]
    ratios: Sequence[Ratio] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target and its measured value; `found` is None if its size was not measured."""

    what: str
    bound: Literal["at most", "at least"]
    limit: float
    found: float | None
    unit: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None if not measured."""
        if self.found is None:
            return None
        return self.found <= self.limit if self.bound == "at most" else self.found >= self.limit


@dataclass(frozen=True, kw_only=True)
class Result:
    """The measurements of one benchmark."""

    letter: str
    title: str
    cases: Sequence[Case]
    targets: Sequence[Target] = ()

    def as_json(self) -> dict[str, Any]:
        """Convert to plain values, including medians and verdicts."""
        plain = asdict(self)
        for case in plain["cases"]:
            case["medians"] = {name: round(median(times), 4) for name, times in case["seconds"].items()}
        for target, told in zip(self.targets, plain["targets"], strict=True):
            told["met"] = target.met
        return plain


def interleaved(peers: Sequence[Peer], rounds: int, *, warm_ups: int = 0) -> dict[str, list[float]]:
    """Run the peers in turn, round by round, each round in the reverse order of the round before.

    Args:
        peers: The ways to do the job.
        rounds: How often each peer runs.
        warm_ups: Untimed rounds before the first; they have negative numbers.

    Returns:
        Peer to its times in seconds, in the order of the rounds.
    """
    seconds: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for number in range(-warm_ups, rounds):
        for peer in peers if number % 2 == 0 else reversed(peers):
            peer.prepare(number)
            started = time.perf_counter()
            peer.run(number)
            taken = time.perf_counter() - started
            say(f"  {f'round {number + 1}' if number >= 0 else 'warm-up'}: {peer.name:<34} {taken:8.2f} s")
            if number >= 0:
                seconds[peer.name].append(round(taken, 4))
    return seconds


def ratio(seconds: Mapping[str, Sequence[float]], over: str, under: str) -> Ratio:
    """Return the ratio of two peers' medians."""
    return Ratio(over=over, under=under, value=round(median(seconds[over]) / median(seconds[under]), 3))


def say(text: str) -> None:
    """Print progress."""
    print(text, flush=True)
