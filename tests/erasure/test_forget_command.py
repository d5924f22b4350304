"""What `blogdata forget` does last, and what it shows: neither needs Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.erasure.certificates import WHOLE, certificates
from blogdata.erasure.journal import Erasure, Journal
from blogdata.lake.lake import Lake
from blogdata.operations import forget_steps
from blogdata.operations.forget_steps import StillRemembered
from blogdata.orchestration import owners, turns
from blogdata.services import config
from blogdata.services.config import Settings
from blogdata.services.files import locked
from blogdata.suppression.identifiers import Identifiers
from lineage.command_line import Said

USER, OTHER = "user-zq4711canary", "user-zq4712canary"
USERS = "silver.users"
PERSONS = Identifiers(user_ids=frozenset({USER}))
AT = 1_767_614_400.0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A deployment of which an older version of a table, and a refused batch, have the person."""
    (tmp_path / "blogdata.toml").touch()
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    made = config.load()
    users = made.lake / "silver" / "users"
    for names in ([USER, OTHER], [OTHER]):
        write_deltalake(users, pa.table({"user_id": names}), mode="overwrite")
    shutil.copytree(users, made.lake / "refused" / "silver_users")
    for file in made.lake.rglob("*"):
        os.utime(file, (0, 0))
    forget_steps.suppress(made, Erasure(persons=PERSONS, at=AT))
    return made


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(monkeypatch, capsys)


def test_a_search_names_the_places_and_no_value(settings: Settings, said: Said) -> None:
    code, text, _ = said("forget", "--search", USER)
    assert (code, USER in text) == (1, False)
    assert all(place in text for place in (USERS, "refused batches"))
    assert said("forget", "--search", "nobody-of-that-name")[0] == 0
    assert said("forget", "--search")[0] == 2


def test_the_last_step_clears_and_leaves_a_certificate(settings: Settings, said: Said) -> None:
    assert said("forget", "--certificates")[1] == "nobody was forgotten\n"
    erasure = Erasure(persons=PERSONS, at=AT)
    Journal.of(settings).begin(erasure)
    for _ in range(2):
        forget_steps.clear(settings, erasure)
    Journal.of(settings).end()
    lines = {line.place: line for line in certificates(Lake(root=str(settings.lake)))}
    assert (lines[USERS].files, lines[WHOLE].files_with_values) == (1, 0)
    assert lines[WHOLE].persons
    assert said("forget", "--search", USER)[0] == 0
    assert said("forget", "--search", OTHER)[0] == 1
    code, text, _ = said("forget", "--certificates")
    assert (code, WHOLE in text, USER in text) == (0, True, False)


def test_one_process_erases_at_a_time(settings: Settings, said: Said) -> None:
    Journal.of(settings).begin(Erasure(persons=PERSONS, at=AT))
    with locked(settings.home / ".forgetting.lock"):
        code, _, errors = said("forget")
    assert (code, "Another process has been at work" in errors) == (1, True)
    assert Journal.of(settings).under_way() == Erasure(persons=PERSONS, at=AT)


def test_the_last_step_waits_for_a_run_that_publishes(settings: Settings) -> None:
    lake, owner = Lake(root=str(settings.lake)), owners.this_run()
    turns.claims(lake, USERS).take(["2026-01-05"], owner)
    with pytest.raises(StillRemembered, match="could not be cleared everywhere") as raised:
        forget_steps.clear(settings, Erasure(persons=PERSONS, at=AT))
    assert USERS in raised.value.what
    assert certificates(lake) == []
