"""Of several runs one takes each partition, and what a dead one held is taken by the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from claiming import KEYS
from evidence.claims import PARTITION_STATE, Claim, Claims
from lake.lake import Lake
from orchestration import owners

PROGRAM = Path(__file__).parent.parent / "claiming.py"
H0, H1, H2 = "2026-01-05T00", "2026-01-05T01", "2026-01-05T02"


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


def claims(lake: Lake, dataset: str = "silver.visits", dead: str = "") -> Claims:
    return Claims(lake, dataset, alive=lambda claim: claim.owner != dead)


def test_a_partition_is_taken_by_one_and_free_again_when_it_is_done(lake: Lake) -> None:
    assert claims(lake).take([H1, H0], "one") == [H0, H1]
    assert claims(lake).take([H1, H2], "other") == [H2]
    assert {key: claim.owner for key, claim in claims(lake).held().items()} == {H0: "one", H1: "one", H2: "other"}
    claims(lake).release([H0, H1, H2], "one")
    assert list(claims(lake).held()) == [H2], "what another one holds is not given free"
    assert claims(lake).take([H1], "other") == [H1]


def test_who_holds_a_partition_already_is_given_it_again(lake: Lake) -> None:
    assert claims(lake).take([H0], "one") == claims(lake).take([H0], "one") == [H0]


def test_a_renewed_claim_counts_as_taken_now_and_a_lost_one_is_not_renewed(lake: Lake) -> None:
    claims(lake).take([H0, H1], "one")
    before = claims(lake).held()
    assert claims(lake).renew([H0], "one") == [H0]
    after = claims(lake).held()
    assert after[H0].taken_at > before[H0].taken_at
    assert after[H1] == before[H1], "only what was asked for"
    claims(lake, dead="one").take([H0], "heir")
    assert claims(lake).renew([H0, H2], "one") == []
    assert {key: claim.owner for key, claim in claims(lake).held().items()} == {H0: "heir"}


def test_what_a_dead_one_held_is_free_without_anybody_doing_anything(lake: Lake) -> None:
    claims(lake).take([H0, H1], "victim")
    assert claims(lake, dead="victim").held() == {}
    assert claims(lake, dead="victim").take([H1], "heir") == [H1]
    assert {claim.owner for claim in claims(lake).held().values()} == {"heir"}, "the dead one's claims are gone"


def test_claims_on_one_dataset_are_none_on_another(lake: Lake) -> None:
    claims(lake).take([H0], "one")
    assert claims(lake, "gold.page_stats").take([H0], "other") == [H0]
    assert list(claims(lake).held()) == [H0]


def test_nothing_wanted_and_nothing_to_release_write_nothing(lake: Lake) -> None:
    assert claims(lake).take([], "one") == []
    claims(lake).release([H0], "one")
    assert lake.version(PARTITION_STATE) is None


def test_an_owner_of_this_machine_lives_as_long_as_its_process() -> None:
    now = datetime.now(timezone.utc)
    mine = owners.this_run()
    assert owners.alive(Claim(partition=H0, owner=mine, taken_at=now))
    host, pid, created, run = mine.rsplit(" ", 3)
    assert not owners.alive(Claim(partition=H0, owner=f"{host} {pid} {created}0 {run}", taken_at=now))
    assert owners.this_run() != mine


def test_an_owner_of_another_machine_lives_as_long_as_its_lease() -> None:
    away = "elsewhere 1 1.0 abc"
    now = datetime.now(timezone.utc)
    assert owners.alive(Claim(partition=H0, owner=away, taken_at=now - owners.LEASE + timedelta(minutes=1)))
    assert not owners.alive(Claim(partition=H0, owner=away, taken_at=now - owners.LEASE - timedelta(minutes=1)))


def test_of_three_pipelines_one_is_killed_and_fifty_late_partitions_are_integrated_each_once(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "done"
    folder.mkdir()
    commands = [[sys.executable, str(PROGRAM), str(home), str(folder), str(dies)] for dies in (0, 0, 2)]
    started = [subprocess.Popen(command, cwd=PROGRAM.parent.parent.parent) for command in commands]
    assert [process.wait(timeout=600) for process in started] == [0, 0, -signal.SIGKILL]
    done = {key: (folder / key).read_text().splitlines() for key in KEYS}
    assert [key for key, by in done.items() if len(by) != 1] == []
    killed = str(started[-1].pid)
    assert sum(by == [killed] for by in done.values()) == 2, "between claim and completion"
    assert len({owner for by in done.values() for owner in by}) == 3, "each had some"
    # Looked at by somebody who takes nobody for dead: the others have taken what it held.
    assert claims(Lake(root=str(home / "lake"))).held() == {}


def test_a_claim_on_an_old_view_of_the_table_fails_and_is_tried_on_the_new_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims(lake, "gold.page_stats").take([H2], "somebody")
    slow = claims(lake)
    views = [lake.table(PARTITION_STATE)]
    assert claims(lake).take([H0], "fast") == [H0]
    monkeypatch.setattr(slow, "_table", lambda: views.pop() if views else lake.table(PARTITION_STATE))
    assert slow.take([H0], "slow") == []
    assert not views
    assert claims(lake).held()[H0].owner == "fast"
