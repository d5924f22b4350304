"""Lost files of every kind of table: each is found, its publication withdrawn, and recomputed as a step does it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable

from blogdata.evidence import damage, ledger, repair
from blogdata.evidence.damage import Damage, DamageKind
from blogdata.evidence.events import EventLog
from blogdata.lake import members
from blogdata.lake.commit import WHOLE_TABLE, Account
from blogdata.lake.lake import Lake
from blogdata.lake.store_faults import DataFileDamaged, LogDamaged, store_faults
from blogdata.orchestration.lake_resource import DeploymentResource, LakeResource
from blogdata.orchestration.step import FullDelivery, Step, Upstream
from blogdata.patterns.idempotency.fast_metadata_cleaner import FrozenPeriod, freeze
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.run import RunContext
from blogdata.publish.target import Engine
from blogdata.publish.write_faults import AuditFailed
from blogdata.publish.writes import InOrder, Merge
from idempotency.test_fast_metadata_cleaner import BEFORE, LAST, NEW, OLD, WEEKS
from toy import LETTERS, target

MERGED = replace(LETTERS, write=Merge())
EXECUTED = replace(LETTERS, write=InOrder(period=Grain.DAY, replay_limit=1, marks_rows=True))
DAYS = ("2024-10-05", "2024-10-06", "2024-10-08", "2024-10-09")
EIGHT = dict.fromkeys("ABCDEFGH", "5th")
DELIVERIES: Mapping[str, Mapping[str, str]] = {
    DAYS[0]: EIGHT,
    DAYS[1]: {**EIGHT, "B": "6th"},
    DAYS[2]: {**EIGHT, "B": "8th", "X": "8th"},
    DAYS[3]: {letter: "9th" if letter == "A" else "5th" for letter in "ACDEFGHY"},
}
FROZEN = "frozen"
NO_LANDING_ZONE = LandingZone(folder=Path("/nowhere"))


@dataclass(frozen=True, kw_only=True)
class Access:
    """The lake access that these steps need: they read no batches."""

    lake: Lake
    events: EventLog
    landing_path: Path = Path("/nowhere")
    landing_zone: LandingZone = NO_LANDING_ZONE
    checkpoints_path: Path = Path("/nowhere")
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None


class World:
    """A table of one kind, and its computation."""

    def __init__(self, spark: Any, root: Path, contract: Contract) -> None:
        self.spark, self.root, self.contract = spark, root, contract
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)

    @property
    def folder(self) -> Path:
        return Path(self.lake.path(self.contract.dataset))

    def step(self, run: str, *partitions: str) -> Step:
        return Step(
            contract=self.contract,
            partitions=partitions,
            spark=self.spark,
            access=cast(LakeResource, Access(lake=self.lake, events=self.events)),
            deployment=DeploymentResource(home=str(self.root)),
            run=RunContext(run_id=run, job="tests", code_version="v1"),
        )

    def letters(self, day: str) -> Any:
        return self.spark.createDataFrame(list(DELIVERIES[day].items()), "letter STRING, says STRING")

    def compute(self, run: str, *keys: str) -> None:
        """Compute the given days of deliveries, or weeks."""
        if self.contract.executed is not None:
            self.step(run, *keys).publish(
                lambda day: FullDelivery(
                    rows=lambda _: self.letters(day), account=Account(rows_in=len(DELIVERIES[day]))
                )
            )
        elif self.contract.marks_rows:
            for number, day in enumerate(keys):
                account, rows = Account(rows_in=len(DELIVERIES[day])), self.letters(day)
                self.step(f"{run}-{number}").publish(FullDelivery(rows=_constant(rows), account=account))
        else:
            rows = [(week, click) for week in keys for click in sorted(BEFORE[week])]
            frame = self.spark.createDataFrame(rows, "week STRING, click BIGINT")
            accounts = {week: Account(rows_in=len(BEFORE[week])) for week in keys}
            self.step(run, *keys).publish(frame, Upstream(accounts=accounts))

    def compute_what_is_missing(self) -> None:
        """Compute the missing partitions, as the next run does; of days that depend on each other request only the
        newest.
        """
        missing = self.missing()
        assert missing
        if self.contract.partitioning is not None:
            self.compute("again", *missing)
        else:
            self.compute("again", DAYS[-1])

    def missing(self) -> Sequence[str]:
        every = BEFORE if self.contract.partitioning else DELIVERIES if self.contract.executed else (WHOLE_TABLE,)
        return sorted(set(every) - self.events.publications(self.contract.dataset).keys())

    def rows(self) -> list[tuple[Any, ...]]:
        with store_faults(self.contract.dataset):
            return sorted(tuple(row) for row in self.lake.read(self.spark, self.contract.dataset).collect())

    def inspect(self) -> list[Damage]:
        return list(damage.inspect(self.lake, self.contract.dataset, self.contract.partition_column))

    def mend(self) -> list[str]:
        return list(repair.mend(self.lake, self.events, self.contract, self.inspect()))

    def problems(self) -> list[str]:
        return [line.problem for line in ledger.audit(self.lake, self.events, self.contract) if line.problem]


FORMS = {"merged": MERGED, "executed": EXECUTED, "members": WEEKS, FROZEN: WEEKS}


@pytest.fixture(scope="module")
def whole(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a table of each requested kind, once."""
    made: dict[str, Path] = {}

    def make(form: str) -> Path:
        if form not in made:
            made[form] = tmp_path_factory.mktemp(form) / "lake"
            world = World(spark, made[form], FORMS[form])
            for number, keys in enumerate(((OLD, LAST), (NEW,)) if world.contract.partitioning else (DAYS,)):
                world.compute(f"run-{number}", *keys)
            world.events.publications(world.contract.dataset)
            if form == FROZEN:
                freeze(spark, target(world.root, "freeze", contract=WEEKS), final_before=NEW)
        return made[form]

    return make


@pytest.fixture
def world(request: pytest.FixtureRequest, spark: Any, whole: Callable[[str], Path], tmp_path: Path) -> World:
    """A copy of a table of this kind, to be damaged."""
    return World(spark, shutil.copytree(whole(request.param), tmp_path / "lake"), FORMS[request.param])


def cut(file: Path) -> None:
    """Truncate a file to its first half."""
    file.chmod(0o644)
    os.truncate(file, file.stat().st_size // 2)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def flipped(file: Path) -> None:
    """Flip a bit of a file; size and checksum file stay the same."""
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def a_data_file(world: World) -> list[Path]:
    if world.contract.partitioning is None:
        return [Path(DeltaTable(str(world.folder)).file_uris()[0])]
    (member,) = [one for one in members.seen(world.lake, WEEKS.dataset).visible if LAST in one.partitions]
    folder = Path(world.lake.path(members.table_of(WEEKS.dataset, member.location)), f"week={LAST}")
    return [next(folder.glob("*.parquet"))]


def the_marks(world: World) -> list[Path]:
    return list(world.folder.glob("deletion_vector_*.bin"))


LOSSES = [
    ("merged", a_data_file),
    ("merged", the_marks),
    ("executed", a_data_file),
    ("executed", the_marks),
    ("members", a_data_file),
    (FROZEN, a_data_file),
]
HARMS = {"gone": Path.unlink, "cut off": cut, "flipped": flipped}
TRIED = (("merged", a_data_file, "flipped"), ("executed", the_marks, "cut off"))
"""The cases of the suite."""


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("world", "files", "harm"),
    [
        pytest.param(
            *(form, files, HARMS[harm]),
            id=f"{form} {files.__name__}-{harm}",
            marks=[] if (form, files, harm) in TRIED else pytest.mark.campaign,
        )
        for harm in HARMS
        for form, files in LOSSES
    ],
    indirect=["world"],
)
def test_lost_files_are_named_and_computed_again(
    world: World, files: Callable[[World], list[Path]], harm: Callable[[Path], None]
) -> None:
    expected = world.rows()
    lost = files(world)
    for file in lost:
        harm(file)
    with pytest.raises(DataFileDamaged, match="blogdata job repair"):
        world.rows()
    with pytest.raises(DataFileDamaged, match="blogdata job repair"):
        world.lake.columns(world.contract.dataset, [world.contract.columns[-1].name])
    partition = LAST if world.contract.partitioning else WHOLE_TABLE
    found = world.inspect()
    assert {(one.kind, one.file in lost, one.partition) for one in found} == {(DamageKind.DATA, True, partition)}
    (done,) = world.mend()
    assert done.startswith("all executions are" if world.contract.executed else ("partition", "all of it"))
    world.compute_what_is_missing()
    assert world.missing() == []
    assert world.rows() == expected
    assert world.inspect() == []
    assert world.problems() == []


@pytest.mark.matrix(4)
@pytest.mark.parametrize("world", FORMS, indirect=True)
def test_the_newest_commit_cut_off_is_made_again(world: World) -> None:
    expected, before = world.rows(), world.lake.version(world.contract.dataset)
    cut(max((world.folder / "_delta_log").glob("*.json")))
    with pytest.raises(LogDamaged, match="blogdata job repair"):
        world.rows()
    (done,) = world.mend()
    assert f"version {before} now is what version {before - 1 if before else None} was" in done
    if world.missing():
        world.compute_what_is_missing()
    assert world.missing() == []
    assert world.rows() == expected, "the publication that froze a year is as before"
    assert world.inspect() == []
    assert world.problems() == []


@pytest.mark.parametrize("world", ["merged", pytest.param("executed", marks=pytest.mark.campaign)], indirect=True)
def test_a_table_whose_log_begins_anew_is_computed_again(world: World) -> None:
    expected = world.rows()
    log = world.folder / "_delta_log"
    for file in [*log.glob("*.checkpoint.parquet"), *log.glob("_last_checkpoint")]:
        file.unlink()
    sorted(log.glob("*.json"))[1].unlink()
    with pytest.raises(LogDamaged, match="blogdata job repair"):
        world.rows()
    (done,) = world.mend()
    assert "it begins anew" in done
    assert (world.rows(), world.inspect()) == ([], [])
    world.compute_what_is_missing()
    assert (world.missing(), world.rows(), world.inspect(), world.problems()) == ([], expected, [], [])


@pytest.mark.parametrize("world", [FROZEN], indirect=True)
def test_whole_frozen_weeks_stay_frozen_beside_a_loss(world: World) -> None:
    for file in a_data_file(world):
        file.unlink()
    world.mend()
    with pytest.raises(FrozenPeriod, match=f"{OLD} is frozen"):
        world.compute("late", OLD, LAST)
    world.compute("again", LAST)
    assert world.inspect() == []


@pytest.mark.campaign
@pytest.mark.parametrize("world", ["executed"], indirect=True)
def test_a_refused_rebuild_gives_its_own_reason(world: World) -> None:
    for file in a_data_file(world):
        file.unlink()
    world.mend()
    with pytest.raises(AuditFailed, match="account"):
        world.step("bad", DAYS[0]).publish(
            lambda day: FullDelivery(rows=lambda _: world.letters(day), account=Account(rows_in=1))
        )
    world.compute_what_is_missing()
    assert (world.missing(), world.inspect(), world.problems()) == ([], [], [])


def _constant(rows: Any) -> Callable[[Any], Any]:
    return lambda _: rows
