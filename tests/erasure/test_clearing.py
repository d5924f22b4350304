"""Places that remember a person are cleared: nothing of the person is left, and everybody else is."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import toy
from blogdata.erasure.certificates import WHOLE, certificates, issue
from blogdata.erasure.clearing import Clearing, clear, look
from blogdata.lake.lake import Lake
from blogdata.lake.shares import Held, Share
from blogdata.operations.forget import remaining
from blogdata.orchestration import owners, turns
from blogdata.orchestration.partner import TOKENS, known_as, outbox
from blogdata.patterns.data_value.outbox import Outbox, Row
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Column, How, Subject, Whose
from blogdata.publish.writes import InOrder, Write
from blogdata.services import config, secrets
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers

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
RUN = json.dumps({"tags": {"asked for by": f"{USER}, {OTHER}", "user-zq4711": "row"}})
LEFT = (".blog.log.partial", ".landing", ".spooled-x", ".blog.log.erasing", ".of-another.log.partial")
"""Hidden files that killed processes left in the landing zone; one has the other person only."""
NOW = datetime(2026, 1, 6, tzinfo=timezone.utc)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A deployment whose current rows have the other person only, and everything else both."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "blogdata.toml").touch()
    made = config.load(overrides={"BLOGDATA_HOME": str(home)})
    for place in (made.lake / "silver" / "letters", made.lake / "refused" / "silver_letters"):
        write_deltalake(place, _rows(USER, OTHER))
    write_deltalake(made.lake / "silver" / "letters", _rows(OTHER), mode="overwrite")
    write_deltalake(made.lake / "refused" / "silver_others", _rows(OTHER))
    changed = made.lake / "silver" / "letters" / "_change_data"
    changed.mkdir()
    shutil.copy(next((made.lake / "refused" / "silver_letters").glob("*.parquet")), changed / "c.parquet")
    for stream, user in (("visits", USER), ("sessions", OTHER)):
        state = home / "checkpoints" / stream / "v1" / "query" / "state" / "0" / "0"
        state.mkdir(parents=True)
        (state / "1.delta").write_bytes(gzip.compress(user.encode()))
        (home / "checkpoints" / stream / "v1" / "stream.json").write_text("{}")
    spark = home / "services" / "spark"
    spark.mkdir(parents=True)
    (spark / "spark.log").write_text(f"a row of {USER} failed")
    (spark / "other.log").write_text(f"a row of {OTHER} failed")
    _send(outbox(made))
    _ask(home / "dagster" / "history" / "runs.db")
    step = home / "dagster" / "compute_logs" / "run" / "step.out"
    step.parent.mkdir(parents=True)
    step.write_text(f"a run for {USER}")
    logs = made.landing / "access_logs"
    logs.mkdir(parents=True)
    for name in LEFT:
        (logs / name).write_text(f"a line of {OTHER if 'other' in name else USER}")
    events = made.landing / "_events" / "refused"
    events.mkdir(parents=True)
    for name, user in (("a", USER), ("b", OTHER)):
        (events / f"{name}.json").write_text(f'{{"payload": "{user}"}}')
    for file in made.lake.rglob("*"):
        os.utime(file, (0, 0))
    return made


def _rows(*users: str) -> pa.Table:
    return pa.table({"letter": list(users), "says": ["hello"] * len(users)})


def _send(box: Outbox) -> None:
    users = [USER, OTHER, USER]
    rows = [Row(identity=[str(at)], key=user, at=at, payload={"user": user}) for at, user in enumerate(users)]
    box.take("2026-01-05T10", "1", rows, rows_in=3, private=0)
    first = box.due(before="2026-01-06")[:1]
    box.number(first)
    box.taken(first)


def _ask(storage: Path) -> None:
    """Have a run whose tag has the person, in a file like that of Dagster's runs, which has a log of writes."""
    storage.parent.mkdir(parents=True)
    with closing(sqlite3.connect(storage)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body TEXT, key BLOB)")
        database.execute("INSERT INTO runs (body, key) VALUES (?, ?), (NULL, NULL)", (RUN, USER.encode()[:4]))
        database.commit()


def _clear(settings: Settings) -> Clearing:
    return clear(settings, [LETTERS], PERSONS, since=time.time())


def _others(settings: Settings) -> list[tuple[str, str, int]]:
    """Where the other person is."""
    return [(one.path, one.how, one.count) for one in look(settings, [LETTERS], [OTHER]).traces]


def _state(settings: Settings) -> Any:
    lines = outbox(settings).lines()
    letters = DeltaTable(settings.lake / "silver" / "letters").to_pyarrow_table().to_pylist()
    return lines, letters, _others(settings)


def test_nothing_of_the_person_is_left_and_everything_of_the_other(settings: Settings) -> None:
    before = {one.path for one in look(settings, [LETTERS], PERSONS.values()).traces}
    beginnings = {"lake/silver", "lake/refused", "checkpoints/visits", "services/spark"}
    assert {"/".join(path.split("/")[:2]) for path in before} >= beginnings
    assert "partner.sqlite" in {path.split("/")[0] for path in before}
    found = _clear(settings)
    assert found.remaining == ()
    assert found.searched.traces == ()
    assert found.searched.unsearched == ()
    lines, letters, others = _state(settings)
    assert [(line.rows_in, line.missing, dict(line.states)) for line in lines] == [(1, 0, {"waiting": 1})]
    assert [row["letter"] for row in letters] == [OTHER]
    places = {path.split("/")[0] for path, _, _ in others}
    assert places == {"lake", "checkpoints", "services", "partner.sqlite", "landing", "dagster"}
    with closing(sqlite3.connect(settings.home / "dagster" / "history" / "runs.db")) as storage:
        rows = storage.execute("SELECT id, body FROM runs").fetchall()
    assert rows == [(1, RUN.replace(USER, "*" * len(USER))), (2, None)]
    assert (settings.lake / "refused" / "silver_others").is_dir()


def test_the_partner_is_to_be_told_of_what_it_has(settings: Settings) -> None:
    (box,) = (one for one in _clear(settings).cleared if one.place == "partner.sqlite")
    key = known_as(USER, secrets.read(settings, TOKENS).reveal())
    assert (box.rows, box.note) == (2, f"the partner has 1 of these records: tell it to erase those of the keys {key}")


def test_folders_at_another_place_within_the_home_are_cleared(tmp_path: Path) -> None:
    variables = {"BLOGDATA_LAKE": str(tmp_path / "data" / "tables"), "BLOGDATA_LANDING": str(tmp_path / "data" / "in")}
    made = config.load(overrides={"BLOGDATA_HOME": str(tmp_path), **variables})
    write_deltalake(made.lake / "refused" / "silver_letters", _rows(USER, OTHER))
    (made.landing / "visits").mkdir(parents=True)
    (made.landing / "visits" / ".a.json.partial").write_text(USER)
    before = look(made, [LETTERS], PERSONS.values())
    assert {trace.path.partition("/")[0] for trace in before.traces} == {"lake", "landing"}
    assert before.files == len([path for path in tmp_path.rglob("*") if path.is_file()]), "each once"
    assert _clear(made).remaining == ()


def test_once_more_changes_nothing(settings: Settings) -> None:
    _clear(settings)
    before = _state(settings)
    assert _clear(settings).cleared == ()
    assert _state(settings) == before


class Cut(Exception):
    """A process that ends here."""


@pytest.mark.parametrize("first", [0, 2])
def test_cut_off_before_any_change_it_goes_on_to_the_same_end(settings: Settings, first: int) -> None:
    """Each run gets four changes further than the one before, and begins where that one was cut off."""
    cuts = 0
    while not _cut_off(settings, first + 4 * cuts):
        cuts += 1
        assert cuts < 100
    assert cuts > 0
    assert look(settings, [LETTERS], PERSONS.values()).traces == ()
    lines, letters, _ = _state(settings)
    assert [(line.rows_in, line.missing) for line in lines] == [(1, 0)]
    assert len(letters) == 1


def _cut_off(settings: Settings, at: int) -> bool:
    """Clear until the change of that number is about to be made; return whether it ended before."""
    left = at

    def cut(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Cut
            left -= 1
            return change(*arguments, **options)

        return changed

    with pytest.MonkeyPatch.context() as patch:
        for name in ("unlink", "rename"):
            patch.setattr(pathlib.Path, name, cut(getattr(pathlib.Path, name)))
        patch.setattr(shutil, "rmtree", cut(shutil.rmtree))
        patch.setattr(sqlite3, "connect", cut(sqlite3.connect))
        try:
            _clear(settings)
        except Cut:
            return False
    return True


def test_a_dataset_that_another_run_publishes_is_left(settings: Settings) -> None:
    lake = Lake(root=str(settings.lake))
    held, owner = turns.claims(lake, LETTERS.dataset), owners.this_run()
    held.take(["2026-01-05"], owner)
    left = {one.place: one.left for one in _clear(settings).cleared if one.left}
    assert left == dict.fromkeys((LETTERS.dataset, f"log of {LETTERS.dataset}"), "another run is publishing it")
    held.release(["2026-01-05"], owner)
    assert _clear(settings).remaining == ()


@pytest.mark.parametrize(
    ("write", "gone"), [(LETTERS.write, ["version 0", "version 2"]), (InOrder(period=Grain.DAY), ["version 0"])]
)
def test_a_version_that_was_made_before_all_was_computed_again_is_gone(
    settings: Settings, write: Write, gone: list[str]
) -> None:
    """Not if it is one of a table that is built on what was computed again."""
    began = time.time()
    _share_two_versions(settings)
    found = clear(settings, [replace(LETTERS, write=write)], PERSONS, since=time.time() + 1, began=began)
    assert [sorted(one.gone) for one in found.cleared if one.place == LETTERS.dataset] == [gone]
    assert Lake(root=str(settings.lake)).is_whole(LETTERS.dataset, 3)


def _share_two_versions(settings: Settings) -> None:
    """Publish two more versions, and share the oldest one and one of these."""
    folder = settings.lake / "silver" / "letters"
    for _ in range(2):
        write_deltalake(folder, _rows(OTHER), mode="overwrite")
    for file in folder.rglob("*.parquet"):
        os.utime(file, (0, 0))
    identity = str(DeltaTable(folder).metadata().id)
    for version in (0, 2):
        held = {LETTERS.dataset: Held(id=identity, version=version)}
        share = Share(dataset=LETTERS.dataset, version=version, since=NOW, files=1, rows=1, tables=held)
        record = settings.lake / "_shares" / LETTERS.dataset / share.name / "_share.json"
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps(share.as_json()))


def test_a_version_that_was_kept_is_gone_by_name_and_one_made_since_stays(settings: Settings) -> None:
    """A share stands for every reason to keep a version."""
    lake, began = Lake(root=str(settings.lake)), time.time()
    _share_two_versions(settings)
    found = clear(settings, [LETTERS], PERSONS, since=began)
    (letters,) = (one for one in found.cleared if one.place == LETTERS.dataset)
    assert list(letters.gone) == ["version 0"]
    assert [lake.is_whole(LETTERS.dataset, version) for version in range(4)] == [False, False, True, True]
    assert found.remaining == ()


def test_hidden_files_of_others_and_those_in_use_are_left(settings: Settings) -> None:
    logs = settings.landing / "access_logs"
    (logs / ".of-a-producer").write_text(USER)
    with (logs / ".spooled-x").open("rb") as spooled:
        fcntl.flock(spooled, fcntl.LOCK_EX)
        left = {trace.path.rpartition("/")[2] for trace in _clear(settings).remaining}
    assert left == {".of-a-producer", ".spooled-x"}


def test_a_stream_that_runs_is_left(settings: Settings) -> None:
    held, owner = turns.claims(Lake(root=str(settings.lake)), "stream visits"), owners.this_run()
    held.take(["visits"], owner)
    found = _clear(settings)
    assert [one.left for one in found.cleared if one.left] == ["it is running"]
    assert {trace.place for trace in found.remaining} == {"state of streams"}
    held.release(["visits"], owner)


def test_a_login_that_is_a_word_of_any_checkpoint_begins_no_stream_anew(settings: Settings) -> None:
    for stream in ("visits", "sessions"):
        (settings.checkpoints / stream / "v1" / "query" / "metadata").write_text('{"id":"default"}')
    before = sorted(settings.checkpoints.rglob("*"))
    clear(settings, [LETTERS], Identifiers(logins=frozenset({"default"})), since=time.time())
    assert sorted(settings.checkpoints.rglob("*")) == before


@pytest.mark.parametrize(
    ("place", "begins"), [("state/0/0/2.delta", True), ("state/0/0/123456.delta", False), ("offsets/2", False)]
)
def test_a_number_is_an_id_in_the_rows_of_a_state_only(settings: Settings, place: str, begins: bool) -> None:
    file = settings.checkpoints / "visits" / "v1" / "query" / place
    file.parent.mkdir(parents=True, exist_ok=True)
    number = b"" if "123456" in place else b"123456"
    file.write_bytes(gzip.compress(b"\x00row\x00" + number + b"\x00"))
    clear(settings, [LETTERS], Identifiers(user_ids=frozenset({"123456"})), since=time.time())
    assert file.exists() is not begins


def test_the_partner_may_have_records_whose_outcome_is_not_known(settings: Settings) -> None:
    box = outbox(settings)
    box.number([one for one in box.due(before="2026-01-06") if one.key == USER])
    (cleared,) = (one for one in _clear(settings).cleared if one.place == "partner.sqlite")
    assert (cleared.rows, cleared.note[:30]) == (2, "the partner has 2 of these rec")


def test_rows_of_sqlite_leave_nothing_behind(settings: Settings) -> None:
    _clear(settings)
    with closing(sqlite3.connect(settings.home / "partner.sqlite")) as database:
        assert database.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_texts_of_others_and_of_programs_are_not_overwritten(settings: Settings) -> None:
    """A value of theirs has the person's within it, and the person has chosen a program's name as login."""
    persons = Identifiers(emails=frozenset({"bo@mail.example"}), logins=frozenset({"python3", "utf-8"}))
    his, theirs = '"bo@mail.example"', ("al.bo@mail.example", "bo@mail.example.org", "jo+bo@mail.example", "python3")
    history = settings.home / "dagster" / "history" / "runs.db"
    with closing(sqlite3.connect(history)) as storage:
        storage.execute("UPDATE runs SET body = ? WHERE id = 1", (", ".join((his, *theirs, "utf-8")),))
        storage.commit()
    clear(settings, [LETTERS], persons, since=time.time())
    with closing(sqlite3.connect(history)) as storage:
        ((body,),) = storage.execute("SELECT body FROM runs WHERE id = 1").fetchall()
    assert body == ", ".join((f'"{"*" * 15}"', *theirs, "utf-8"))


def test_a_certificate_says_what_was_done_and_has_no_value(settings: Settings) -> None:
    lake = Lake(root=str(settings.lake))
    found = _clear(settings)
    for _ in range(2):
        issue(lake, "erasure-1", NOW, "v1", ["a1b2"], found)
    lines = {line.place: line for line in certificates(lake)}
    assert len(certificates(lake)) == len(lines), "issued once"
    assert lines[WHOLE].files_with_values == 0
    assert sum(line.files for line in certificates(lake) if line.place == LETTERS.dataset) == 2
    assert lines["log of silver.letters"].files == 1
    assert lines["partner.sqlite"].rows == 2
    assert all((line.persons, line.code_version, line.issued_at) == (("a1b2",), "v1", NOW) for line in lines.values())
    assert look(settings, [LETTERS], PERSONS.values()).traces == ()


def test_a_certificate_says_what_is_left(settings: Settings) -> None:
    lake = Lake(root=str(settings.lake))
    (settings.home / "notes.txt").write_text(USER)
    issue(lake, "erasure-1", NOW, "v1", ["a1b2"], _clear(settings))
    lines = {line.place: line for line in certificates(lake)}
    assert (lines[WHOLE].files_with_values, lines["no declared place"].files_with_values) == (1, 1)


def test_what_is_left_is_said_and_nothing_otherwise(settings: Settings) -> None:
    lake = Lake(root=str(settings.lake))
    issue(lake, "erasure-1", NOW, "v1", ["a1b2"], _clear(settings))
    assert remaining(settings) == []
    (settings.home / "notes.txt").write_text(USER)
    issue(lake, "erasure-2", NOW, "v1", ["a1b2"], _clear(settings))
    assert remaining(settings) == ["no declared place (1)"]


@pytest.mark.parametrize("word", ["row", "10234"])
def test_a_value_that_is_a_word_of_any_text_removes_nothing_and_is_counted(settings: Settings, word: str) -> None:
    checkpoint = next(path for path in settings.checkpoints.rglob("*") if path.is_dir()) / "offsets"
    checkpoint.mkdir()
    (checkpoint / "7").write_text('{"logOffset":10234,"row":1}')
    short = Identifiers(user_ids=frozenset({word}))
    found = clear(settings, [LETTERS], short, since=time.time())
    assert (found.short, (settings.home / "services" / "spark" / "spark.log").exists()) == (1, True)
    assert found.remaining == ()
