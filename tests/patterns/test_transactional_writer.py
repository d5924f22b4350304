import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.publication import Commit
from blogdata.contract.writes import AppearsWith
from blogdata.patterns.idempotency.transactional_writer import overwrite_together
from blogdata.table import companions
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.target import Companion, Provenance
from laws.stepping import Probe
from toy import CONTRACT, HOURS, accounts, clicks, copies_of, declared, problems, resting, table, target

MAIN = replace(CONTRACT, measures={"disputed": "count_if(stands_for = 3)"})
BESIDE = declared(
    "silver.disputes",
    "hour STRING NOT NULL, click BIGINT NOT NULL",
    key=("click",),
    partitioning=CONTRACT.partitioning,
    write=AppearsWith(main=MAIN.dataset),
)


class World:
    """A lake with clicks and their disputes: every click that stands for three rows is disputed."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.lake = Lake(root=str(root))

    def write(self, rows: int, run: str, *, without: int = -1, probe: Probe | None = None) -> dict[str, Commit]:
        frame = clicks(self.spark, rows)
        companion = Companion(
            contract=BESIDE,
            frame=frame.where(f"stands_for = 3 AND click <> {without}").select("hour", "click"),
            counted_measure="reason.duplicates",
            kept_measure="disputed",
            dropped_reason="undisputed",
        )
        into = target(self.root, run, MAIN, probe=probe and str(probe.folder))
        return overwrite_together(frame, into, HOURS, Provenance(accounts=accounts(rows)), companions=[companion])

    def disputed(self) -> tuple[set[int], set[int]]:
        """Return the disputed clicks by the clicks and by the disputes, at matching versions."""
        at = self.lake.versions([MAIN.dataset, BESIDE.dataset])
        clicked = resting(self.root, MAIN.dataset, at[MAIN.dataset])
        disputes = [click for _, click in resting(self.root, BESIDE.dataset, at[BESIDE.dataset])]
        assert len(disputes) == len(set(disputes)), "no row is doubled"
        return {click for _, click, stands_for, _ in clicked if stands_for == 3}, set(disputes)


def disputes_among(rows: int) -> set[int]:
    return {click for click in range(rows) if click % 3 == 2}


world = copies_of(lambda spark, root: World(spark, root).write(60, "one"), World)


def test_both_tables_appear_with_their_accounts(world: World) -> None:
    done = world.write(90, "two")
    assert world.disputed() == (disputes_among(90), disputes_among(90))
    entry = done[BESIDE.dataset].entries[HOURS[0]]
    duplicates = done[MAIN.dataset].entries[HOURS[0]].reasons["duplicates"]
    assert (entry.rows_in, entry.rows_out) == (duplicates, len(disputes_among(90) & {*range(0, 90, 2)}))
    assert entry.reasons == {"undisputed": duplicates - entry.rows_out}
    assert entry.inputs[MAIN.dataset] == done[MAIN.dataset].version
    assert problems(world.lake, MAIN, BESIDE) == []
    again = world.write(90, "two")
    assert [commit.repeated for commit in again.values()] == [True, True]
    assert [commit.version for commit in again.values()] == [commit.version for commit in done.values()]


@pytest.mark.matrix(1000)
@pytest.mark.parametrize("phase", ["audited", "companion.audited", "opened"])
def test_a_crash_before_the_commit_publishes_neither_table(world: World, probe: Probe, phase: str) -> None:
    probe.end(phase)
    with pytest.raises(Exception, match=f"ended at {phase}"):
        world.write(30, "two", probe=probe)
    assert world.disputed() == (disputes_among(60), disputes_among(60))
    world.write(30, "two")
    assert world.disputed() == (disputes_among(30), disputes_among(30))
    assert problems(world.lake, MAIN, BESIDE) == []


def test_readers_complete_a_crash_after_the_commit(world: World, probe: Probe) -> None:
    probe.end("committed")
    with pytest.raises(Exception, match="ended at committed"):
        world.write(30, "two", probe=probe)
    here = Lake(root=str(world.root))
    assert sum(here.row_counts(BESIDE.dataset, "hour").values()) == len(disputes_among(30)), "also without a JVM"
    assert {row[1] for row in table(world.spark, world.root, BESIDE.dataset)} == disputes_among(30)
    assert world.write(30, "two")[MAIN.dataset].repeated
    assert problems(world.lake, MAIN, BESIDE) == []


def test_readers_never_see_one_table_without_the_other(world: World) -> None:
    seen, done = list[tuple[set[int], set[int]]](), threading.Event()

    def read() -> None:
        while not done.wait(0.05):
            seen.append(world.disputed())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        sizes = {world.write(size, f"run-{size}")[MAIN.dataset].version: size for size in (90, 30)}
    finally:
        done.set()
        reader.join()
    assert len(seen) > len(sizes)
    assert [both for both in seen if both[0] != both[1]] == []
    for version, size in sizes.items():
        at = companions.version_with(world.lake, BESIDE.dataset, version)
        assert {click for _, click in resting(world.root, BESIDE.dataset, at)} == disputes_among(size)


def test_a_companion_that_breaks_its_contract_blocks_both(world: World) -> None:
    with pytest.raises(AuditFailed) as refused:
        world.write(30, "two", without=2)
    assert refused.value.dataset == BESIDE.dataset
    assert "account.accounted" in {item.rule for item in refused.value.violations}
    assert world.disputed() == (disputes_among(60), disputes_among(60))
