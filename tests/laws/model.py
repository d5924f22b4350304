"""A lineage beside a model of it in plain Python: a state machine whose steps Hypothesis draws."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from blogdata.contract.publication import Commit
from blogdata.table.faults import ConcurrentWrite
from laws.small_lineage import BRONZE, GOLD, HOURS, SILVER, Line, Lineage
from laws.stepping import Held, Probe

Rows = list[tuple[Any, ...]]
IN_THE_ENGINE = ("opened", "written", "audited", "committed")
RECORDED = "recorded"
PHASES = (*IN_THE_ENGINE, RECORDED)

lines = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["/a", "/b", "/c"])), min_size=0, max_size=5)
hours = st.sampled_from(HOURS)
some_hours = st.sets(hours, min_size=1)
datasets = st.sampled_from([BRONZE.dataset, SILVER.dataset, GOLD.dataset])


KINDS: dict[str, tuple[str, dict[str, st.SearchStrategy[Any]]]] = {}
"""Kind of step to the method that makes it and what it draws."""


def step(**drawn: Any) -> Callable[[Callable[..., None]], Any]:
    """Declare a rule of the machine, and list it as a kind of step."""

    def declare(does: Callable[..., None]) -> Any:
        kind = does.__name__.replace("_", " ")
        KINDS[kind] = (does.__name__, drawn)

        @wraps(does)
        def made(self: Machine, **given: Any) -> None:
            type(self).made[kind] += 1
            does(self, **given)

        declared: Any = rule(**drawn)
        return declared(made)

    return declare


def clicks_of(arrived: Sequence[Line], hour: str) -> Rows:
    """Compute the clicks of an hour: of several lines of one click the first to arrive counts."""
    by_click: dict[int, list[Line]] = defaultdict(list)
    for line in sorted(arrived):
        if line.hour == hour:
            by_click[line.click].append(line)
    return sorted(
        (hour, click, same[0].page, len(same), sum(line.page != same[0].page for line in same))
        for click, same in by_click.items()
    )


def pages_of(clicks: Rows) -> Rows:
    return sorted(Counter(row[2] for row in clicks).items())


class Died(Exception):
    """The run died where the test ended it."""


class Machine(RuleBasedStateMachine):
    """A lineage beside its model."""

    spark: ClassVar[Any]
    made: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="model-"))
        (self.folder / "lake").mkdir()
        self.lineage = Lineage(self.spark, self.folder / "lake")
        self.landed: dict[str, list[Line]] = {}
        self.arrived: dict[str, list[Line]] = {}
        self.clicks: dict[str, Rows] = {}
        self.pages: Rows = []
        self.readable: dict[str, dict[int, Rows]] = defaultdict(dict)
        self.looked: dict[str, tuple[int | None, Rows]] = {}
        self.published: set[tuple[str, str, tuple[str, ...]]] = set()
        self.runs = 0
        self.dead: list[tuple[str, str]] = []
        self.probes = 0

    def teardown(self) -> None:
        """Let a final run complete everything, then discard the lineage."""
        if self.clicks:
            self._run(self._name())
            self._look(everywhere=True)
            assert self.arrived == self.landed
            assert self.clicks == {hour: clicks_of(self._lines(), hour) for hour in self.clicks}
            assert {line.hour for line in self._lines()} <= set(self.clicks)
        shutil.rmtree(self.folder)

    @initialize(drawn=st.integers(0, 1000))
    def begin(self, drawn: int) -> None:
        """Publish something everywhere, so that every rule has something to change."""
        # The very first example is the simplest one: a single rule repeated.
        assume(drawn)
        self._land(HOURS[0], HOURS[0], [(1, "/a"), (1, "/b"), (2, "/a")])
        self._run(self._name())

    @step(arrival=hours, new=lines)
    def land(self, arrival: str, new: Sequence[tuple[int, str]]) -> None:
        """Land lines that happened in their hour of arrival, in an hour that may be published already."""
        self._land(arrival, arrival, new)

    @step(arrival=hours)
    def duplicate(self, arrival: str) -> None:
        if landed := self.landed.get(arrival):
            self._land(arrival, landed[-1].hour, [(landed[-1].click, landed[-1].page)])

    @step(arrival=hours, page=st.sampled_from(["/a", "/b", "/c"]))
    def conflict(self, arrival: str, page: str) -> None:
        """Land a click again, with another page."""
        if landed := self.landed.get(arrival):
            self._land(arrival, landed[0].hour, [(landed[0].click, page)])

    @step(arrival=hours, hour=hours, new=lines)
    def late(self, arrival: str, hour: str, new: Sequence[tuple[int, str]]) -> None:
        """Land lines of an earlier hour than their hour of arrival."""
        self._land(max(arrival, hour), min(arrival, hour), new)

    @step(dataset=datasets)
    def run(self, dataset: str) -> None:
        self._run_one(dataset, self._name())

    @step(dataset=datasets, phase=st.sampled_from(PHASES))
    def crash(self, dataset: str, phase: str) -> None:
        """Die in the middle of a run over stale partitions, or over all of them."""
        name = self._name()
        with pytest.raises(Died):
            self._run_one(dataset, name, dies=phase)
        self.dead.append((dataset, name))

    @precondition(lambda self: self.dead)
    @step()
    def retry(self) -> None:
        """Run a dead run again, under its own run id."""
        self._run_one(*self.dead.pop())

    @step(asked=some_hours)
    def backfill(self, asked: set[str]) -> None:
        """Recompute hours that may be up to date."""
        self._integrate(sorted(asked), self._name())

    @step(asked=some_hours)
    def replay(self, asked: set[str]) -> None:
        """Publish hours of arrival again, and everything computed from them."""
        name = self._name()
        again = [hour for hour in sorted(asked) if hour in self.landed]
        if again:
            self._arrive(again, name)
            self._run_one(SILVER.dataset, name)

    @step(dataset=datasets)
    def compact(self, dataset: str) -> None:
        self.lineage.statement(dataset, "OPTIMIZE {table}")
        self._look()

    @step(dataset=datasets)
    def vacuum(self, dataset: str) -> None:
        """Remove files that no newest version needs."""
        self.lineage.statement(dataset, "VACUUM {table} RETAIN 0 HOURS")
        newest = self.lineage.version(dataset)
        self.readable[dataset] = {newest: self.readable[dataset][newest]} if newest in self.readable[dataset] else {}
        self._look(everywhere=True)

    @step(choice=st.randoms(use_true_random=False))
    def restore(self, choice: Any) -> None:
        """Restore an earlier version, as a person does, then recompute everything."""
        version = choice.choice(sorted(self.readable[SILVER.dataset]))
        self.lineage.statement(SILVER.dataset, f"RESTORE TABLE {{table}} TO VERSION AS OF {version}")
        assert self.lineage.rows(SILVER.dataset) == self.readable[SILVER.dataset][version]
        self._integrate(sorted(self.clicks), self._name())

    @step(dataset=datasets, choice=st.randoms(use_true_random=False))
    def look_back(self, dataset: str, choice: Any) -> None:
        """Read an earlier version and compare it with its rows of that time."""
        version = choice.choice(sorted(self.readable[dataset]))
        assert self.lineage.rows(dataset, version) == self.readable[dataset][version]

    @step(slow=some_hours, fast=some_hours)
    def meet(self, slow: set[str], fast: set[str]) -> None:
        """Two concurrent runs of clicks; if both write an hour, the later commit is refused."""
        first, second = self._name(), self._name()
        probe = self._probe()
        before = dict(self.clicks)
        with Held(lambda: self._publish_clicks(slow, first, probe.folder), probe, "audited") as held:
            self._integrate(sorted(fast), second)
        # If an hour has no rows before and after, both runs may commit it.
        disputed = {hour for hour in slow & fast if before.get(hour) or self.clicks.get(hour)}
        if isinstance(held.error, ConcurrentWrite):
            assert slow & fast
            self._look()
            self._integrate(sorted(slow), first)
        else:
            assert held.error is None, held.error
            assert not disputed
            self._integrated(sorted(slow), first)

    @step(slow=some_hours)
    def arrive_meanwhile(self, slow: set[str]) -> None:
        """Clicks are computed while their input is published again: afterwards they are stale, and known to be."""
        name = self._name()
        seen = {key: list(part) for key, part in self.arrived.items()}
        probe = self._probe()
        with Held(lambda: self._publish_clicks(slow, name, probe.folder), probe, "written") as held:
            if self._not_arrived():
                self._arrive(self._not_arrived(), self._name())
        assert held.error is None, held.error
        self._integrated(sorted(slow), name, [line for part in seen.values() for line in part])

    def _land(self, arrival: str, hour: str, new: Sequence[tuple[int, str]]) -> None:
        landed = self.landed.setdefault(arrival, [])
        for click, page in new:
            landed.append(Line(arrival, len(landed), hour, click, page))

    def _run(self, name: str) -> None:
        for dataset in (BRONZE.dataset, SILVER.dataset, GOLD.dataset):
            self._run_one(dataset, name)

    def _run_one(self, dataset: str, name: str, dies: str | None = None) -> None:
        # A run that should die always gets something to do.
        if dataset == BRONZE.dataset:
            stale = self._not_arrived() or (sorted(self.landed) if dies else [])
            if stale:
                self._arrive(stale, name, dies)
        elif dataset == SILVER.dataset:
            behind = self.lineage.behind() or (sorted(self.clicks) if dies else [])
            if behind:
                self._integrate(behind, name, dies, stale=self.lineage.behind())
        elif dies or self.lineage.pages_behind():
            self._count(name, dies)

    def _not_arrived(self) -> list[str]:
        return [hour for hour in sorted(self.landed) if self.arrived.get(hour) != self.landed[hour]]

    def _count(self, name: str, dies: str | None) -> None:
        rows = self._all_clicks()
        apply = partial(setattr, self, "pages", pages_of(rows))
        self._step(GOLD.dataset, (), name, partial(self.lineage.count, name), apply, dies)

    def _arrive(self, keys: Sequence[str], name: str, dies: str | None = None) -> None:
        parts = {key: list(self.landed[key]) for key in keys}
        publish = partial(self.lineage.arrive, parts, name)
        self._step(BRONZE.dataset, tuple(keys), name, publish, lambda: self.arrived.update(parts), dies)

    def _integrate(
        self, keys: Sequence[str], name: str, dies: str | None = None, *, stale: Collection[str] = ()
    ) -> None:
        rows = {key: clicks_of(self._lines(), key) for key in keys}
        publish = partial(self.lineage.integrate, keys, name, stale=stale)
        self._step(SILVER.dataset, tuple(keys), name, publish, lambda: self.clicks.update(rows), dies)

    def _step(
        self,
        dataset: str,
        keys: tuple[str, ...],
        name: str,
        publish: Callable[[Path | None], Commit],
        apply: Callable[[], None],
        phase: str | None,
    ) -> None:
        known = (dataset, name, keys) in self.published
        if phase in IN_THE_ENGINE and not known:
            probe = self._probe()
            probe.end(phase)
            with pytest.raises(Exception, match=f"the write was ended at {phase}"):
                publish(probe.folder)
            if phase == "committed":
                apply()
                self.published.add((dataset, name, keys))
            self._look()
            raise Died
        commit = publish(None)
        assert commit.repeated == known
        if not known:
            apply()
            self.published.add((dataset, name, keys))
        if phase is not None:
            self._look()
            raise Died
        self.lineage.events.record(commit)
        self._look()

    def _publish_clicks(self, keys: set[str], name: str, probe: Path) -> None:
        self.lineage.events.record(self.lineage.integrate(sorted(keys), name, probe))

    def _integrated(self, keys: Sequence[str], name: str, seen: Sequence[Line] | None = None) -> None:
        lines = self._lines() if seen is None else seen
        self.clicks.update({key: clicks_of(lines, key) for key in keys})
        self.published.add((SILVER.dataset, name, tuple(keys)))
        self._look()

    def _look(self, *, everywhere: bool = False) -> None:
        """Readers see the model's rows, the ledger balances, and every stale partition is known.

        Rows verified at the table's current version are checked again when a step asks for that version.
        """
        expected: dict[str, Rows] = {
            BRONZE.dataset: sorted(tuple(vars(line).values()) for line in self._lines()),
            SILVER.dataset: self._all_clicks(),
            GOLD.dataset: self.pages,
        }
        for dataset, rows in expected.items():
            version = self.lineage.lake.version(dataset)
            if not everywhere and self.looked.get(dataset) == (version, rows):
                continue
            assert self.lineage.rows(dataset) == rows, dataset
            assert self.lineage.problems(dataset) == []
            self.looked[dataset] = (version, rows)
            if version is not None:
                self.readable[dataset][version] = rows
        wrong = {hour for hour, rows in self.clicks.items() if rows != clicks_of(self._lines(), hour)}
        wrong |= {line.hour for line in self._lines()} - set(self.clicks)
        if self.arrived:
            assert wrong <= set(self.lineage.behind())

    def _lines(self) -> list[Line]:
        return [line for part in self.arrived.values() for line in part]

    def _all_clicks(self) -> Rows:
        return sorted(row for rows in self.clicks.values() for row in rows)

    def _name(self) -> str:
        self.runs += 1
        return f"run-{self.runs}"

    def _probe(self) -> Probe:
        self.probes += 1
        return Probe(self.folder / f"probe-{self.probes}")


def deal(machine: Machine, data: st.DataObject) -> None:
    """Draw a permutation of all kinds of step."""
    left = set(KINDS)
    while left:
        # A retry needs a dead run first.
        kind = data.draw(st.sampled_from(sorted(left if machine.dead else left - {"retry"})))
        name, drawn = KINDS[kind]
        getattr(machine, name)(**{argument: data.draw(values) for argument, values in drawn.items()})
        left.remove(kind)
