"""Of several runs one claims each partition; claims of a dead run are taken over by the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.ledger.claims import PARTITION_STATE, Claim, Claims
from blogdata.runs import turns
from blogdata.table.lake import Lake
from claiming import KEYS

PROGRAM = Path(__file__).parent.parent / "claiming.py"
H0, H1, H2 = "2026-01-05T00", "2026-01-05T01", "2026-01-05T02"


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


def claims(lake: Lake, dataset: str = "silver.visits", dead: str = "") -> Claims:
    return Claims(lake, dataset, alive=lambda claim: claim.owner != dead)


def test_one_run_takes_a_partition_until_its_release(lake: Lake) -> None:
    assert claims(lake).take([H1, H0], "one") == [H0, H1]
    assert claims(lake).take([H1, H2], "other") == [H2]
    assert {key: claim.owner for key, claim in claims(lake).held().items()} == {H0: "one", H1: "one", H2: "other"}
    claims(lake).release([H0, H1, H2], "one")
    assert list(claims(lake).held()) == [H2], "a claim of another run is not released"
    assert claims(lake).take([H1], "other") == [H1]


def test_renewing_extends_held_claims_but_not_lost_ones(lake: Lake) -> None:
    claims(lake).take([H0, H1], "one")
    before = claims(lake).held()
    assert claims(lake).renew([H0], "one") == [H0]
    after = claims(lake).held()
    assert after[H0].taken_at > before[H0].taken_at
    assert after[H1] == before[H1], "only what was asked for"
    claims(lake, dead="one").take([H0], "heir")
    assert claims(lake).renew([H0, H2], "one") == []
    assert {key: claim.owner for key, claim in claims(lake).held().items()} == {H0: "heir"}


def test_a_dead_owners_partitions_are_free(lake: Lake) -> None:
    claims(lake).take([H0, H1], "victim")
    assert claims(lake, dead="victim").held() == {}
    assert claims(lake, dead="victim").take([H1], "heir") == [H1]
    assert {claim.owner for claim in claims(lake).held().values()} == {"heir"}, "claims of the dead owner are gone"


def test_a_local_owner_lives_with_its_process() -> None:
    now = datetime.now(timezone.utc)
    mine = turns.this_run()
    assert turns.alive(Claim(partition=H0, owner=mine, taken_at=now))
    host, pid, created, run = mine.rsplit(" ", 3)
    assert not turns.alive(Claim(partition=H0, owner=f"{host} {pid} {created}0 {run}", taken_at=now))
    assert turns.this_run() != mine


def test_a_remote_owner_lives_with_its_lease() -> None:
    away = "elsewhere 1 1.0 abc"
    now = datetime.now(timezone.utc)
    assert turns.alive(Claim(partition=H0, owner=away, taken_at=now - turns.LEASE + timedelta(minutes=1)))
    assert not turns.alive(Claim(partition=H0, owner=away, taken_at=now - turns.LEASE - timedelta(minutes=1)))


def test_fifty_partitions_integrate_once_despite_a_killed_pipeline(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "done"
    folder.mkdir()
    commands = [[sys.executable, str(PROGRAM), str(home), str(folder), str(dies)] for dies in (0, 2)]
    started = [subprocess.Popen(command, cwd=PROGRAM.parent.parent.parent) for command in commands]
    assert [process.wait(timeout=600) for process in started] == [0, -signal.SIGKILL]
    done = {key: (folder / key).read_text().splitlines() for key in KEYS}
    assert [key for key, by in done.items() if len(by) != 1] == []
    killed = str(started[-1].pid)
    assert sum(by == [killed] for by in done.values()) >= 2, "between claim and completion"
    assert len({owner for by in done.values() for owner in by}) == 2, "each had some"
    # Queried by an owner that considers nobody dead: the other has taken over its claims.
    assert claims(Lake(root=str(home / "lake"))).held() == {}


def test_a_claim_on_a_stale_view_is_retried(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(lake, "gold.page_stats").take([H2], "somebody")
    views, table = [lake.table(PARTITION_STATE)], Lake.table
    assert claims(lake).take([H0], "fast") == [H0]
    monkeypatch.setattr(Lake, "table", lambda store, name: views.pop() if views else table(store, name))
    assert claims(lake).take([H0], "slow") == []
    assert not views
    assert claims(lake).held()[H0].owner == "fast"
