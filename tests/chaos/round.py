"""One round: a pipeline in which every writer is killed; then everything is compared.

The next run or attempt completes what is left. If a publication is missing it is killed there again, otherwise at the
next writer, so each kill costs little more than the work it interrupted. A round depends on its seed only, so it can be
repeated with all of its kills or with those of one writer.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from chaos import verdict
from chaos.bench import Bench
from chaos.draws import AFTER, ENDED, LOGGED, OPTIMIZE, RUN, SERVER, VACUUM, WRITERS, Kill
from chaos.verdict import Verdict
from lineage.deployment import Deployment
from lineage.phases import PATIENCE_SECONDS, PHASES, RECORDED, UNPUBLISHED, Hold
from lineage.worker import Job, Worker
from quality.contracts import CONTRACTS

EMPTY_SHARE = 0.25
"""Share of rounds that begin with an empty lake."""
_LEFTOVERS = 40
_DAY_SECONDS = 24 * 3600
_TRIES = 4


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A kill that happened.

    Args:
        kill: The kill.
        reached: The last phase that the publication reached, or what the maintenance left.
        checkpoint: Of the interrupted version: `whole`, `cut off`, `none` (none was due), or `not yet`.
        seconds: Seconds since the kill before.
    """

    kill: Kill
    reached: str
    checkpoint: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


@dataclass(kw_only=True)
class Done:
    """A completed round."""

    hits: list[Hit] = field(default_factory=list)
    missed: list[Kill] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    seconds: float = 0.0


class Round:
    """A round.

    Args:
        bench: Its environment.
        number: Its number.
        kills: Its kills, in order; several kills of one writer are for consecutive attempts.
        empty: Whether it begins with an empty lake.
        tell: Called with each kill as it happens.
    """

    def __init__(
        self,
        bench: Bench,
        number: int,
        kills: Sequence[Kill],
        *,
        empty: bool,
        tell: Callable[[Hit], None] = lambda hit: None,
    ) -> None:
        self._bench = bench
        self._tell = tell
        self._folder = bench.folder / "rounds" / str(number)
        self._publications: dict[str, list[Kill]] = {}
        for kill in kills:
            if not kill.is_maintenance:
                self._publications.setdefault(kill.writer, []).append(kill)
        self._maintenance = [kill for kill in kills if kill.is_maintenance]
        self.deployment: Deployment = bench.deployment(
            self._folder / "home", empty=empty, doomed=any(kill.victim == SERVER for kill in kills)
        )
        self._before = self.deployment.versions()
        self._done = Done()
        self._outliving: list[Hold] = []
        self._raced: set[str] = set()
        self._runs = 0
        self._holds = 0
        self._last = time.monotonic()

    def run(self) -> Done:
        """Run the round."""
        began = time.monotonic()
        self._publish()
        self._maintain()
        late = self._settle()
        self._done.verdict = verdict.of(self._bench, self.deployment, before=self._before, raced=self._raced, late=late)
        self._done.problems += self._done.verdict.problems
        self._done.seconds = time.monotonic() - began
        return self._done

    def _publish(self) -> None:
        (self._folder / "armed").mkdir(parents=True)
        holds = {kill: self._arm(kill) for kill in (each.pop(0) for each in self._publications.values())}
        run = self._start()
        while (kill := self._first_reached(holds, run)) is not None:
            hold = holds.pop(kill)
            hit = self._strike(kill, hold, run)
            self._note(kill, hit)
            for other, touched in holds.items():
                # The run finished the publication before the kill, which interrupted this publication as well.
                if touched.touched:
                    holds[other] = self._arm(other)
                    if kill.victim == RUN:
                        self._went_on(other.writer)
            if hit is not None and hit.reached in UNPUBLISHED and self._publications[kill.writer]:
                following = self._publications[kill.writer].pop(0)
                holds[following] = self._arm(following)
            else:
                self._disarm(kill.writer)
            self._let_go(kill, hold, hit)
            if not run.working:
                if hit is None:
                    self._done.problems += run.problems()
                run = self._start()
        self._done.problems += run.problems()
        for kill in holds:
            self._note(kill, None)
            self._disarm(kill.writer)
        self._free()

    def _first_reached(self, holds: Mapping[Kill, Hold], run: Worker) -> Kill | None:
        """Wait until any publication reaches its kill point; None if the run ended before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            working = run.working
            for kill, hold in holds.items():
                if hold.was(_phase(kill)):
                    return kill
            if not working:
                return None
            assert time.monotonic() < deadline, f"none of these was ever published: {[kill.text for kill in holds]}"
            time.sleep(0.005)

    def _start(self) -> Worker:
        self._runs += 1
        folder = self._folder / "runs" / str(self._runs)
        return Worker(
            Job(home=str(self.deployment.settings.home), folder=str(folder), armed=str(self._folder / "armed"))
        )

    def _arm(self, kill: Kill) -> Hold:
        is_held = kill.delay is None or kill.moment in ("audited", LOGGED)
        phases = [_phase(kill)] if is_held else []
        self._holds += 1
        folder = self._folder / "holds" / f"{kill.writer}-{self._holds}"
        hold = Hold(folder, kill.writer, *phases).prepare()
        # A whole-table dataset; and the interrupted write keeps its folder.
        link = self._folder / "holds" / "link"
        link.symlink_to(folder)
        link.replace(self._folder / "armed" / kill.writer)
        return hold

    def _disarm(self, writer: str) -> None:
        (self._folder / "armed" / writer).unlink()

    def _strike(self, kill: Kill, hold: Hold, run: Worker) -> Hit | None:
        noted = self._version(kill.writer)
        if kill.delay is not None:
            hold.release()
            if kill.moment == LOGGED:
                _until(lambda: self._version(kill.writer) > noted or not run.working)
            time.sleep(kill.delay / 1000)
        if kill.victim == RUN:
            happened = run.kill()
        else:
            happened = run.working
            if happened:
                self._bench.servers.kill(self.deployment)
        if not happened:
            return None
        if kill.delay is None:
            self._look(kill, noted)
        reached = next(phase for phase in reversed(PHASES) if hold.was(phase))
        if reached == "audited" and self._version(kill.writer) > noted:
            reached = LOGGED
        return self._hit(kill, reached, self._checkpoint(kill.writer, reached))

    def _hit(self, kill: Kill, reached: str, checkpoint: str) -> Hit:
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        return Hit(kill=kill, reached=reached, checkpoint=checkpoint, seconds=round(seconds, 2))

    def _note(self, kill: Kill, hit: Hit | None) -> None:
        if hit is None:
            self._done.missed.append(kill)
        else:
            self._done.hits.append(hit)
            self._tell(hit)

    def _look(self, kill: Kill, noted: int) -> None:
        """Check that readers see either the version before or the whole new one."""
        newest = self._version(kill.writer)
        if newest != noted and kill.writer not in self._raced:
            self._done.problems.append(f"{kill.text}: version {newest} appeared")
        self._done.problems += verdict.unreadable(self.deployment, kill.writer, newest)

    def _let_go(self, kill: Kill, hold: Hold, hit: Hit | None) -> None:
        if kill.victim == RUN and hit is not None and hit.reached in UNPUBLISHED:
            if kill.delay is None and kill.fate == AFTER:
                self._outliving.append(hold)
                return
            if kill.fate == ENDED:
                hold.end()
            if kill.fate != ENDED or kill.delay is not None:
                self._went_on(kill.writer)
        if kill.victim == RUN and kill.delay is not None and CONTRACTS[kill.writer].executed:
            # The run may have started executing another period, which continues in the server.
            self._went_on(kill.writer)
        if kill.victim == RUN and kill.delay is not None and hit is not None and hit.reached == RECORDED:
            # The run may have sent its next publication, of which nothing was visible yet.
            following = dict(pairwise(writer for writer in self._bench.order if writer in WRITERS))
            if kill.writer in following:
                self._went_on(following[kill.writer])
        hold.release()

    def _went_on(self, writer: str) -> None:
        """Record that a killed run's write continues in the server, beside the next run's."""
        self._raced |= {writer, *(name for name, each in CONTRACTS.items() if each.appears_with == writer)}

    def _free(self) -> None:
        for hold in self._outliving:
            hold.release()
        if self._outliving:
            # Most are refused at the end, which leaves no trace to wait for.
            time.sleep(1)

    def _maintain(self) -> None:
        for number, kill in enumerate(self._maintenance):
            statement = self._statement(kill)
            leftovers = self._leave_files(kill) if kill.moment == VACUUM else []
            folder = self._folder / "maintenance" / str(number)
            work = self._do(folder / "killed", statement)
            _until(lambda done=folder / "killed" / "begun", at_work=work: done.exists() or not at_work.working)
            time.sleep((kill.delay or 0) / 1000)
            if (folder / "killed" / "done").exists() or not work.working:
                self._note(kill, None)
                work.wait()
                continue
            if kill.victim == SERVER:
                self._bench.servers.kill(self.deployment)
            happened = work.kill()
            left = f", {sum(file.exists() for file in leftovers)} of {_LEFTOVERS} files left" if leftovers else ""
            self._note(kill, self._hit(kill, f"under way{left}", "none") if happened else None)
            self._again(folder, statement)
            there = [file for file in leftovers if file.exists()]
            if there:
                self._done.problems.append(f"{kill.text}: run again, it left {len(there)} old files")

    def _do(self, folder: Path, statement: str) -> Worker:
        return Worker(Job(home=str(self.deployment.settings.home), folder=str(folder), statement=statement))

    def _again(self, folder: Path, statement: str) -> None:
        # The killed run's write may continue in the server; only one of the two can win.
        for attempt in range(_TRIES):
            work = self._do(folder / f"again-{attempt}", statement)
            _until(lambda at_work=work: not at_work.working)
            if (work.folder / "done").exists():
                return
            time.sleep(0.5)
        self._done.problems.append(f"{statement} failed {_TRIES} times: {work.said[-500:]}")

    def _statement(self, kill: Kill) -> str:
        table = f"delta.`{self.deployment.lake.path(kill.writer)}`"
        if kill.moment != OPTIMIZE:
            return f"VACUUM {table}"
        contract = CONTRACTS[kill.writer]
        there = self.deployment.lake.caught_up(kill.writer)
        # A pointer table has none of the dataset's columns.
        held = {field.name for field in there.schema().fields} - {contract.partition_column} if there else set()
        columns = [f"`{name}`" for name in contract.statistics if name in held]
        # This option rewrites files even if they are few and large.
        return f"OPTIMIZE {table}" + (f" ZORDER BY ({', '.join(columns[:2])})" if columns else "")

    def _leave_files(self, kill: Kill) -> list[Path]:
        """Leave files of killed runs that are older than the table's retention."""
        root = Path(self.deployment.lake.path(kill.writer))
        samples = [file for file in sorted(root.rglob("*.parquet")) if "_delta_log" not in file.parts]
        data, content = (samples[0], samples[0].read_bytes()) if samples else (root / "none", b"")
        table = self.deployment.lake.caught_up(kill.writer)
        kept = table.metadata().configuration.get("delta.deletedFileRetentionDuration") if table else None
        old = time.time() - (int(kept.split()[1]) if kept else 7) * _DAY_SECONDS - _DAY_SECONDS
        left = []
        for number in range(_LEFTOVERS):
            file = data.with_name(f"part-{90000 + number}-left.c000.snappy.parquet")
            file.write_bytes(content)
            os.utime(file, (old, old))
            left.append(file)
        return left

    def _settle(self) -> list[str]:
        """Run until nothing is left to do; return what the first of these runs had to do."""
        late = self._done_by_one_more()
        again = self._done_by_one_more() if late else []
        if again:
            self._done.problems.append(f"done and done again, there was something left to do: {again}")
        return late

    def _done_by_one_more(self) -> list[str]:
        run = self._start()
        self._done.problems += run.problems()
        outcome = run.outcome()
        return [] if outcome["runs"] == ["0"] else list(outcome["order"]) or ["a run that published nothing"]

    def _version(self, dataset: str) -> int:
        return verdict.newest(Path(self.deployment.lake.path(dataset)))

    def _checkpoint(self, dataset: str, reached: str) -> str:
        if reached in UNPUBLISHED:
            return "not yet"
        log = Path(self.deployment.lake.path(dataset)) / "_delta_log"
        version = self._version(dataset)
        table = self.deployment.lake.caught_up(dataset)
        interval = int(table.metadata().configuration.get("delta.checkpointInterval") or 10) if table else 10
        if version % interval:
            return "none"
        whole = any(log.glob(f"{version:020}.checkpoint*.parquet"))
        pointer = log / "_last_checkpoint"
        pointed = pointer.exists() and f'"version":{version}' in pointer.read_text().replace(" ", "")
        return "whole" if whole and pointed else "cut off"


def is_empty(seed: int, number: int) -> bool:
    """Tell whether a round begins with an empty lake."""
    return random.Random(f"{seed}/{number}").random() < EMPTY_SHARE


def _phase(kill: Kill) -> str:
    return "audited" if kill.moment == LOGGED else kill.moment


def _until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
