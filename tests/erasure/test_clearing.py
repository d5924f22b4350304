"""Places that remember a person are cleared: nothing of the person is left, and the rows of everybody else are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import toy
from blogdata.erasure.clearing import Clearing, look
from blogdata.lake.lake import Lake
from blogdata.orchestration import turns
from blogdata.orchestration.partner import TOKENS, known_as, outbox
from blogdata.patterns.data_value.outbox import Outbox, Row
from blogdata.publish.schema import Column, How, Subject, Whose
from blogdata.services import config, secrets
from blogdata.services.config import Settings
from blogdata.suppression.landed_persons import Identifiers

USER, OTHER, ADDRESS = "user-zq4711canary", "user-zq4712canary", "9.77.200.201"
PERSONS = Identifiers(user_ids=frozenset({USER}), addresses=frozenset({ADDRESS}))
LETTERS = replace(
    toy.LETTERS,
    columns=(
        Column(
            name="letter",
            type="STRING",
            nullable=False,
            description="Whose",
            subject=Subject(whose=Whose.USER, how=How.DIRECT),
        ),
        Column(name="says", type="STRING", description="What it says"),
    ),
)
HIDDEN = (".blog.log.partial", ".landing", ".blog.log.erasing")
"""Files that killed processes left in the landing zone."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A deployment whose current rows have the other person only, and everything else both."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "blogdata.toml").touch()
    made = config.load(overrides={"BLOGDATA_HOME": str(home)})
    for place in (made.lake / "silver" / "letters", made.lake / "refused" / "silver_letters"):
        write_deltalake(place, rows(USER, OTHER))
    write_deltalake(made.lake / "silver" / "letters", rows(OTHER), mode="overwrite")
    changed = made.lake / "silver" / "letters" / "_change_data"
    changed.mkdir()
    shutil.copy(next((made.lake / "refused" / "silver_letters").glob("*.parquet")), changed / "c.parquet")
    send(outbox(made))
    texts = {
        home / "services" / "spark" / "server.log": f"a row of {USER} failed",
        home / "dagster" / "compute_logs" / "run" / "step.out": f"a run for {USER}",
        made.landing / "_events" / "refused" / "a.json": f'{{"payload": "{USER}"}}',
        made.landing / "visits" / "of-another.json": f"a line of {OTHER}",
        **{made.landing / "access_logs" / name: f"a line of {USER}" for name in HIDDEN},
    }
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for file in made.lake.rglob("*"):
        os.utime(file, (0, 0))
    return made


def rows(*users: str) -> pa.Table:
    return pa.table({"letter": list(users), "says": ["hello"] * len(users)})


def send(box: Outbox) -> None:
    users = [USER, OTHER, USER]
    records = [Row(identity=[str(at)], key=user, at=at, payload={"user": user}) for at, user in enumerate(users)]
    box.take("2026-01-05T10", "1", records, rows_in=3, private=0)
    first = box.due(before="2026-01-06")[:1]
    box.number(first)
    box.taken(first)


def clear(settings: Settings, notes: dict[str, str] | None = None, **changed: Any) -> list[str]:
    """Clear the deployment; returns what was left."""
    kept = {} if notes is None else notes
    now = time.time()
    asked = {"contracts": (LETTERS,), "persons": PERSONS, "began": now, "note": kept.__setitem__}
    return Clearing(settings=settings, **{**asked, **changed}).clear()


def found(settings: Settings) -> set[str]:
    return {*look(settings, PERSONS.values()).traces}


def test_nothing_of_the_person_is_left_and_all_rows_of_the_other(settings: Settings) -> None:
    before = found(settings)
    places = ["lake/silver/letters/_change_data", "lake/refused", "services/spark", "partner.sqlite"]
    places += ["dagster/compute_logs", "landing/_events/refused", *(f"landing/access_logs/{name}" for name in HIDDEN)]
    assert [place for place in places if not any(path.startswith(place) for path in before)] == []
    notes: dict[str, str] = {}
    for _ in range(2):
        assert clear(settings, notes) == []
        assert (found(settings), look(settings, PERSONS.values()).unsearched) == (set(), {})
        lines = outbox(settings).lines()
        assert [(line.rows_in, line.missing, dict(line.states)) for line in lines] == [(1, 0, {"waiting": 1})]
        letters = DeltaTable(settings.lake / "silver" / "letters").to_pyarrow_table().to_pylist()
        assert [row["letter"] for row in letters] == [OTHER]
        assert (settings.landing / "visits" / "of-another.json").exists()
    with closing(sqlite3.connect(settings.home / "partner.sqlite")) as database:
        assert database.execute("PRAGMA freelist_count").fetchone() == (0,)
    key = known_as(USER, secrets.read(settings, TOKENS).reveal())
    told = f"the partner has 1 of their records, or may have them: tell it to erase those of the keys {key}"
    assert notes == {"partner.sqlite": told}


def test_folders_at_another_place_within_the_home_are_cleared(tmp_path: Path) -> None:
    variables = {"BLOGDATA_LAKE": str(tmp_path / "data" / "tables"), "BLOGDATA_LANDING": str(tmp_path / "data" / "in")}
    made = config.load(overrides={"BLOGDATA_HOME": str(tmp_path), **variables})
    write_deltalake(made.lake / "refused" / "silver_letters", rows(USER, OTHER))
    (made.landing / "visits").mkdir(parents=True)
    (made.landing / "visits" / ".a.json.partial").write_text(USER)
    assert {path.partition("/")[0] for path in found(made)} == {"lake", "landing"}
    assert clear(made) == []
    assert found(made) == set()


def test_a_dataset_that_another_run_publishes_is_left_and_named(settings: Settings) -> None:
    held, owner = turns.claims(Lake(root=str(settings.lake)), LETTERS.dataset), turns.this_run()
    held.take(["2026-01-05"], owner)
    assert clear(settings) == [f"{LETTERS.dataset}: another run is publishing it"]
    held.release(["2026-01-05"], owner)
    assert clear(settings) == []
    assert found(settings) == set()


def test_the_partner_may_have_records_whose_outcome_is_not_known(settings: Settings) -> None:
    box = outbox(settings)
    box.number([one for one in box.due(before="2026-01-06") if one.key == USER])
    notes: dict[str, str] = {}
    assert clear(settings, notes) == []
    assert notes["partner.sqlite"].startswith("the partner has 2 of their records, or may have them")


def test_hidden_files_of_producers_are_left(settings: Settings) -> None:
    (settings.landing / "access_logs" / ".of-a-producer").write_text(USER)
    assert clear(settings) == []
    assert found(settings) == {"landing/access_logs/.of-a-producer"}
