"""A round of a mover: its source changes, it is killed at random moments, and done; then both sides are compared."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from blogdata.services import postgres, spark_connect
from chaos.draws import ATTEMPTS, RUN, Kill
from chaos.movers import Mover, Places
from chaos.movers_of_copies import PassthroughReplicator, RoleExport, TransformationReplicator
from chaos.movers_of_keys import KeyRotation
from chaos.movers_of_loads import ChangedUsers, DevicesTable, LegacyVisits, ProviderVisits
from chaos.round import Done, Hit
from chaos.verdict import Verdict
from chaos.world import difference
from lineage.deployment import Deployment
from lineage.expected_ads import Row
from lineage.phases import PATIENCE_SECONDS
from lineage.worker import Worker

MOVERS: dict[str, type[Mover]] = {
    mover.name: mover
    for mover in (
        DevicesTable,
        LegacyVisits,
        ChangedUsers,
        ProviderVisits,
        PassthroughReplicator,
        TransformationReplicator,
        RoleExport,
        KeyRotation,
    )
}
BEGUN = "begun"


@dataclass(frozen=True, kw_only=True)
class Move:
    """The work of a mover, in a process.

    Args:
        folder: Folder of its output.
        mover: The mover.
    """

    folder: str
    mover: Mover

    def do(self) -> None:
        """Say that it begins, and do it."""
        Path(self.folder, BEGUN).touch()
        self.mover.work()


def drawn(seed: int, number: int, writer: str) -> list[Kill]:
    """Draw the kills of a round of a mover: as long as it has not ended, the next attempt is killed as well."""
    dice = random.Random(f"{seed}/{number}/{writer}")
    return [
        Kill(
            seed=seed,
            round=number,
            writer=writer,
            attempt=attempt,
            victim=RUN,
            moment=BEGUN,
            delay=dice.randint(0, MOVERS[writer].longest),
        )
        for attempt in range(dice.randint(1, ATTEMPTS))
    ]


def done(mover: Mover, folder: Path, kills: list[Kill], tell: Callable[[Hit], None] = lambda hit: None) -> Done:
    """Change the source, kill the mover, let it end, and compare what readers find with the source.

    Args:
        mover: The mover.
        folder: A new folder for the output of its processes.
        kills: Kills of consecutive attempts, of one round.
        tell: Called with each kill as it happens.
    """
    began, made = time.monotonic(), Done(verdict=Verdict())
    before = mover.found()
    mover.change(random.Random(f"{kills[0].seed}/{kills[0].round}/{mover.name}/source"))
    wanted = mover.wanted()
    for kill in kills:
        hit = _killed(mover, folder / str(kill.attempt), kill)
        found = mover.found()
        if mover.appears:
            made.problems += [f"{kill.text}: a mixture in {part}" for part in mixed(found, before, wanted)]
        if hit is None:
            made.missed.append(kill)
            break
        made.hits.append(hit)
        tell(hit)
    last = Worker(Move(folder=str(folder / "last"), mover=mover))
    last.wait()
    assert made.verdict is not None
    left = made.verdict.differences[mover.name] = difference(mover.found(), wanted)
    made.problems += [] if left.none else [f"{mover.name} is not as its source: {left}"]
    made.problems += mover.problems()
    made.seconds = time.monotonic() - began
    return made


def _killed(mover: Mover, folder: Path, kill: Kill) -> Hit | None:
    process, began = Worker(Move(folder=str(folder), mover=mover)), time.monotonic()
    deadline = began + PATIENCE_SECONDS
    while not (folder / BEGUN).exists():
        assert process.working, process.said
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert kill.delay is not None
    time.sleep(kill.delay / 1000)
    if not process.kill():
        process.wait()
        return None
    return Hit(kill=kill, reached=BEGUN, checkpoint="none", seconds=round(time.monotonic() - began, 2))


def mixed(found: Counter[Row], before: Counter[Row], wanted: Counter[Row]) -> list[str]:
    """List the parts that readers find neither as they were before nor as they are in the source."""
    seen, was, becomes = map(_by_part, (found, before, wanted))
    return sorted(part for part in {*seen, *was, *becomes} if seen.get(part) not in (was.get(part), becomes.get(part)))


def _by_part(rows: Counter[Row]) -> dict[str, Counter[Row]]:
    found: dict[str, Counter[Row]] = {}
    for row, times in rows.items():
        found.setdefault(row[0], Counter())[row] = times
    return found


class Services:
    """The servers that movers need: each is started when it is first needed.

    Args:
        folder: Their folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._deployment: Deployment | None = None
        self._databases = 0

    def places(self, name: str) -> Places:
        """Return where a mover finds what it needs."""
        return Places(folder=self._folder / name, database=self.database, spark=self.spark)

    def database(self) -> str:
        """Create an empty database."""
        url, self._databases = postgres.up(self._own().settings), self._databases + 1
        name = f"moves_{self._databases}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{url.rpartition('/')[0]}/{name}"

    def spark(self) -> str:
        """Return the address of a Spark Connect server."""
        return spark_connect.running_server(self._own().settings).url

    def stop(self) -> None:
        """Stop them."""
        if self._deployment is not None:
            self._deployment.close()
            spark_connect.stop(self._deployment.settings)
            postgres.stop(self._deployment.settings)

    def _own(self) -> Deployment:
        self._deployment = self._deployment or Deployment.create(self._folder / "servers")
        return self._deployment
