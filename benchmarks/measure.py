"""Times peers in turn, so that other load on the machine affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Size:
    """The amount of measured data.

    Args:
        visits: Rows; None: the standard sizes of each benchmark.
    """

    visits: int | None
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way to do the job; both functions get the number of the round, and only `run` is timed."""

    name: str
    run: Callable[[int], object]
    prepare: Callable[[int], object] = lambda number: None


@dataclass(frozen=True, kw_only=True)
class Case:
    """All measurements at one size.

    Args:
        seconds: Peer to its times in seconds, in the order of the rounds.
    """

    name: str
    seconds: Mapping[str, Sequence[float]]
    facts: Mapping[str, Any] = field(default_factory=dict)


def interleaved(peers: Sequence[Peer], rounds: int, *, warm_ups: int = 0) -> dict[str, list[float]]:
    """Run the peers in turn, each round in the reverse order of the round before; return the seconds of each.

    Args:
        warm_ups: Untimed rounds before the first; they have negative numbers.
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


def ratio(seconds: Mapping[str, Sequence[float]], over: str, under: str) -> dict[str, float]:
    """Name the ratio of two peers' medians, as a fact of a case."""
    return {f"{over} / {under}": round(median(seconds[over]) / median(seconds[under]), 3)}


def say(text: str) -> None:
    """Print progress."""
    print(text, flush=True)
