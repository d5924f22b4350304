"""A short crash campaign: every writer is killed, some twice, and no row is lost or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from blogdata.services.config import Settings
from chaos.bench import Bench
from chaos.draws import (
    AFTER,
    ATTEMPTS,
    ENDED,
    FATES,
    LOGGED,
    MAINTENANCE,
    RUN,
    SERVER,
    WITHOUT_INPUT,
    WRITERS,
    Kill,
    draw,
    drawn,
)
from chaos.log import Kept
from chaos.round import Done, Round
from chaos.servers import QUICK
from chaos.world import difference
from lineage.phases import PHASES
from lineage.runs import retries
from quality.contracts import CONTRACTS

SEED = 1
DOOMED = "silver.visits"
"""Whose server is killed in the later run: that costs a new server, all other kills are of runs."""
OUTLIVED = "silver.visits_enriched"
"""Whose runs are killed twice on the way to one publication."""


@pytest.fixture(scope="module")
def bench(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A simulated world, and a Spark server that may be killed."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        patch.setenv("BLOGDATA_JARS", str(settings.jars))
        # For a short-lived server, fast compilation matters more than optimized code.
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(QUICK))
        made = Bench.create(tmp_path_factory.mktemp("chaos") / "bench", SEED)
        yield made
        made.servers.stop()


def kills_of_runs(writers: Sequence[str], number: int) -> list[Kill]:
    return [draw(SEED, number, writer) for writer in writers]


def cut_off(writer: str, moment: str, **more: Any) -> Kill:
    return Kill(**{"seed": SEED, "round": 1, "writer": writer, "victim": RUN, "moment": moment, "delay": None, **more})


def assert_nothing_was_lost(done: Done) -> None:
    assert done.problems == []
    assert done.verdict is not None
    assert set(done.verdict.differences) == set(CONTRACTS) - WITHOUT_INPUT
    assert all(found.none for found in (*done.verdict.differences.values(), *done.verdict.counted.values()))
    assert sum(found.compared for found in done.verdict.counted.values()) > 500


@pytest.mark.campaign
def test_a_run_killed_at_every_writer_is_completed(bench: Bench, tmp_path: Path) -> None:
    done = Round(bench, 0, kills_of_runs(bench.order, 0), empty=True).run()
    assert_nothing_was_lost(done)
    assert len(done.hits) + len(done.missed) == len(bench.order)
    assert len(done.hits) >= len(WRITERS) - 3
    kept = Kept(tmp_path, SEED)
    kept.keep(0, done)
    assert kept.hits == Counter(hit.kill.writer for hit in done.hits)
    assert kept.next_round == 1
    lines = kept.totals(bench.order)
    assert all(f"{bench.order[n]}: {kept.hits[bench.order[n]]} kills, 0 lost" in line for n, line in enumerate(lines))


@pytest.mark.campaign
def test_killed_runs_still_publish_later_data_once(bench: Bench) -> None:
    kills = {kill.writer: [kill] for kill in kills_of_runs(bench.order, 1)}
    for writer in bench.order[::2]:
        # Ended, because a continuing write could publish before the next run plans.
        kills[writer] = [cut_off(writer, "opened", fate=ENDED), draw(SEED, 1, writer, 1)]
    kills[DOOMED] = [Kill(seed=SEED, round=1, writer=DOOMED, victim=SERVER, moment="written", delay=None)]
    # Writes that killed runs left in the server continue after the next run has published, and must not replace its
    # rows.
    kills[OUTLIVED] = [
        cut_off(OUTLIVED, moment, attempt=n, fate=AFTER) for n, moment in enumerate(("audited", "opened"))
    ]
    later = Round(bench, 1, [kill for each in kills.values() for kill in each], empty=False)
    done = later.run()
    assert_nothing_was_lost(done)
    assert len(done.hits) >= 20, [kill.text for kill in done.missed]
    assert {hit.kill.writer for hit in done.hits} == set(WRITERS)
    # A killed server is a transient fault: the step is retried on the next server.
    assert retries(later.deployment, DOOMED) == ["SparkServerLost"]
    assert {hit.kill.writer for hit in done.hits if hit.kill.victim == SERVER} == {DOOMED}
    assert [hit.kill.attempt for hit in done.hits if hit.kill.writer == OUTLIVED] == [0, 1]


def test_seeded_kills_repeat_and_cover_every_moment() -> None:
    kills, again, others = (
        [kill for number in range(500) for kill in drawn(seed, number, WRITERS)] for seed in (SEED, SEED, SEED + 1)
    )
    assert kills == again
    assert kills != others
    for victim in (RUN, SERVER):
        assert {kill.moment for kill in kills if kill.victim == victim} == {*PHASES, LOGGED, *MAINTENANCE}
    assert {kill.attempt for kill in kills if kill.victim == RUN} == set(range(ATTEMPTS))
    assert {kill.fate for kill in kills} == set(FATES)


def test_lost_doubled_and_foreign_rows_are_told_apart() -> None:
    found = difference(Counter({("a",): 2, ("c",): 1}), Counter({("a",): 1, ("b",): 1}))
    assert (found.compared, found.lost, found.doubled, found.foreign) == (2, 1, 1, 1)
    assert not found.none
    assert difference(Counter({("a",): 1}), Counter({("a",): 1})).none
