"""What `blogdata forget` does and says; one that is killed anywhere goes on to the same files and certificate.

Without Spark: what is computed again is killed in `tests/lineage/test_concurrent_runs.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli.pipeline import Pipeline
from blogdata.deliver.outbox import Row
from blogdata.deliver.partner import TOKENS, outbox
from blogdata.errors import PlatformError
from blogdata.files import locked
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.suppression_list import SECRET
from blogdata.operate import config, secrets
from blogdata.privacy import forget
from blogdata.privacy.file_search import search
from blogdata.privacy.forget import CERTIFICATES, Erasure, Journal
from blogdata.runs import turns
from blogdata.table.lake import Lake
from lineage.command_line import Said

USER, OTHER = "user-zq4711canary", "user-zq4712canary"
FORGOTTEN = Erasure(persons=Identifiers(user_ids=frozenset({USER})), at=1_767_614_400.0)

LEFT = (
    "services/spark/server.log",
    "dagster/compute_logs/run/step.out",
    "landing/_events/refused/a.json",
    *(f"landing/access_logs/{hidden}" for hidden in (".blog.log.partial", ".landing", ".blog.log.erasing")),
)
"""Logs, and files that killed processes left in the landing zone."""


class Killed(BaseException):
    """A process that ends here: nothing that it does to clear up changes a file."""


def go_on(changes: int = 10_000) -> int:
    """Forget the user, or go on with it, and be killed before so many changes of files; returns how many were made.

    Nothing is published, so nothing is computed again.
    """
    made = 0

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **options: Any) -> Any:
            nonlocal made
            if made == changes:
                raise Killed
            made += 1
            return change(*given, **options)

        return changed

    steps = {name: step for name, step in forget.STEPS.items() if step is not forget.recompute}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forget, "STEPS", MappingProxyType(steps))
        for name in ("unlink", "rename", "replace"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        patch.setattr(sqlite3, "connect", counted(sqlite3.connect))
        settings = config.load()
        forget.go_on(settings, lambda _: None, Pipeline(settings))
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with places of each kind, in which an erasure has begun."""
    home = tmp_path_factory.mktemp("whole") / "home"
    home.mkdir()
    (home / "blogdata.toml").touch()
    made = config.load(overrides={"BLOGDATA_HOME": str(home)})
    for hour in ("10", "11"):
        folder = made.landing / "visits" / "date=2026-01-05" / f"hour={hour}"
        folder.mkdir(parents=True)
        lines = [{"user_id": user, "visit_id": f"of-{user}"} for user in (USER, OTHER)]
        (folder / "visits.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (left := folder / ".late.json.partial").write_text(USER)
    os.utime(left, (0, 0))
    users = made.lake / "silver" / "users"
    for names in ([USER, OTHER], [USER], [OTHER]):
        write_deltalake(users, pa.table({"user_id": names}), mode="overwrite")
    shutil.copytree(users, made.lake / "refused" / "silver_users")
    (users / "_change_data").mkdir()
    shutil.copy(next(made.lake.glob("refused/*/*.parquet")), users / "_change_data")
    for name in LEFT:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(USER)
    for file in made.lake.rglob("*"):
        os.utime(file, (0, 0))
    for stream in ("visits", "of an earlier version"):
        for checkpoint in ("v1", "v2"):
            state = made.checkpoints / stream / checkpoint / "query" / "state" / "0" / "0"
            state.mkdir(parents=True)
            (state / "1.delta").write_bytes(b"LZ4Block" + USER.encode())
    rows = [Row(identity=[user], key=user, at=at, payload={"user": user}) for at, user in enumerate((USER, OTHER))]
    box = outbox(made)
    box.take("2026-01-05T10", "1", rows, rows_in=2, private=0)
    due = box.due(before="2026-01-06")
    box.number(due)
    box.taken(due)
    for name in (SECRET, TOKENS):
        secrets.read(made, name)
    Journal(made.home).write(FORGOTTEN)
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path / "home"))
    return Path(shutil.copytree(whole, tmp_path / "home"))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(monkeypatch, capsys)


def certificate(home: Path) -> Any:
    """Read the certificate without its time, and without how many files there are with those of a kill."""
    (issued,) = (json.loads(file.read_bytes()) for file in (home / CERTIFICATES).glob("*.json"))
    assert issued["files_searched"] > 10
    return {**issued, "issued_at": None, "files_searched": None}


def left(home: Path) -> Any:
    """Return the landed files, and how many files each other place has."""
    assert search(home, [USER]).traces == {}
    assert search(home, [OTHER]).traces != {}
    landed = {
        str(file.relative_to(home)): file.read_bytes() for file in (home / "landing").rglob("*") if file.is_file()
    }
    places = ("lake/silver/users", "lake/refused", "checkpoints")
    counts = {place: sum(1 for file in (home / place).rglob("*") if file.is_file()) for place in places}
    assert (counts["lake/refused"], counts["checkpoints"]) == (0, 0)
    return landed, counts, [path.name for path in home.glob("*forgetting*")]


def test_a_kill_at_any_change_of_a_file_leads_to_the_same_certificate(
    home: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The claims of a process that was killed count no more.
    monkeypatch.setattr(turns, "alive", lambda _: False)
    changes = go_on()
    issued, files = certificate(home), left(home)
    assert "tell it to erase" in issued["notes"]["partner.sqlite"]
    assert (issued["files_with_values"], issued["not_searched"]) == ({}, {})
    assert (len(issued["persons"]), USER in repr(issued)) == (1, False)
    assert changes > 20
    for moment in (*range(1, changes, 9), changes - 1):
        shutil.rmtree(home)
        shutil.copytree(whole, home)
        with pytest.raises(Killed):
            go_on(moment)
        go_on()
        assert (certificate(home), left(home)) == (issued, files), moment


def test_a_search_names_files_and_no_value(home: Path, said: Said) -> None:
    code, text, _ = said("forget", "--search", USER)
    assert (code, USER in text) == (1, False)
    assert all(place in text for place in ("lake/silver/users/", "lake/refused/", "not searched: checkpoints/"))
    assert said("forget", "--search", "nobody-of-that-name")[0] == 0
    assert said("forget", "--search")[0] == 2


def test_one_process_erases_at_a_time(home: Path, said: Said) -> None:
    with locked(home / ".forgetting.lock"):
        code, _, errors = said("forget")
    assert (code, "Another process has been at work" in errors) == (1, True)
    assert Journal(home).under_way() == FORGOTTEN


@pytest.mark.parametrize("of", ["silver.users", "stream visits"])
def test_it_waits_for_a_run_that_publishes_and_for_a_stream(home: Path, of: str) -> None:
    lake, owner, key = Lake(root=str(config.load().lake)), turns.this_run(), "2026-01-05" if "." in of else "visits"
    turns.claims(lake, of).take([key], owner)
    with pytest.raises(PlatformError, match="could not be cleared everywhere") as raised:
        go_on()
    assert of in raised.value.what
    turns.claims(lake, of).release([key], owner)
    go_on()
    assert certificate(home)["files_with_values"] == {}


def test_what_is_left_is_named_in_the_certificate(home: Path) -> None:
    """Files of others, and hidden ones of producers."""
    for name in ("notes.txt", "landing/access_logs/.of-a-producer"):
        (home / name).write_text(USER)
    go_on()
    assert certificate(home)["files_with_values"].keys() == {"notes.txt", "landing/access_logs/.of-a-producer"}
