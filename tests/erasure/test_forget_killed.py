"""What `blogdata forget` does and says; one that is killed anywhere goes on to the same files and certificate.

Without Spark: what is computed again is killed by the crash campaigns (`tests/chaos`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli.pipeline import Pipeline
from blogdata.erasure.journal import CERTIFICATES, Erasure, Journal
from blogdata.erasure.search import search
from blogdata.lake.lake import Lake
from blogdata.operations import forget_steps
from blogdata.operations.forget_steps import StillRemembered
from blogdata.orchestration import owners, turns
from blogdata.orchestration.partner import TOKENS, outbox
from blogdata.patterns.data_value.outbox_account import Row
from blogdata.services import config, secrets
from blogdata.services.config import Settings
from blogdata.services.files import locked
from blogdata.suppression.landed_persons import Identifiers
from blogdata.suppression.suppression_list import SECRET
from lineage.command_line import Said

USER, OTHER = "user-zq4711canary", "user-zq4712canary"
FORGOTTEN = Erasure(persons=Identifiers(user_ids=frozenset({USER})), at=1_767_614_400.0)
CHANGES = 20
KILLED = """
import os, pathlib, signal, sqlite3, sys, traceback
from erasure import test_forget_killed as it

left = 0

def counted(change):
    def changed(*given, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return change(*given, **options)
    return changed

def forgets(home):
    os.environ["BLOGDATA_HOME"] = home
    for name in ("unlink", "rename", "replace"):
        setattr(pathlib.Path, name, counted(getattr(pathlib.Path, name)))
    sqlite3.connect = counted(sqlite3.connect)
    try:
        it.go_on(it.config.load())
        pathlib.Path(home, "left").write_text(str(left))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

for line in sys.stdin:
    home, changes = line.split()
    left, child = int(changes), os.fork()
    if child == 0:
        forgets(home)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A program whose processes are killed before they make their nth change of a file; what forks them has imported all.

It is told a home and a number, and tells how the process ended; in a file it leaves how many of the number were left.
"""


def go_on(settings: Settings) -> None:
    """Forget the user, or go on with it; nothing is published, so nothing is computed again."""
    steps = {name: step for name, step in forget_steps.STEPS.items() if step is not forget_steps.recompute}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forget_steps, "STEPS", MappingProxyType(steps))
        forget_steps.go_on(settings, lambda _: None, Pipeline(settings))


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
    (folder / ".late.json.partial").write_text(USER)
    users = made.lake / "silver" / "users"
    for names in ([USER, OTHER], [USER], [OTHER]):
        write_deltalake(users, pa.table({"user_id": names}), mode="overwrite")
    shutil.copytree(users, made.lake / "refused" / "silver_users")
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
    box.answered(box.opened(box.due(before="2026-01-06"), bulk=True), ())
    for name in (SECRET, TOKENS):
        secrets.read(made, name)
    Journal.of(made).write(FORGOTTEN)
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path / "home"))
    return Path(shutil.copytree(whole, tmp_path / "home"))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(monkeypatch, capsys)


@dataclass(frozen=True)
class Forgetting:
    """The program that forgets the user, in a process for each home."""

    program: subprocess.Popen[str]

    def __call__(self, home: Path, changes: int) -> int:
        """Forget the user, but for a kill before so many changes; returns the exit code."""
        asking, answers = self.program.stdin, self.program.stdout
        assert asking is not None
        assert answers is not None
        asking.write(f"{home} {changes}\n")
        asking.flush()
        return int(answers.readline())


@pytest.fixture(scope="module")
def forgets() -> Iterator[Forgetting]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        yield Forgetting(found)
        found.communicate()


@pytest.fixture(scope="module")
def undisturbed(whole: Path, forgets: Forgetting, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Any, Any]:
    """How many changes an erasure makes, the certificate, and the files that are left."""
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    shutil.copytree(whole, home)
    assert forgets(home, 10_000) == 0
    issued = certificate(home)
    assert "tell it to erase" in issued["notes"]["partner.sqlite"]
    assert (issued["files_with_values"], issued["not_searched"]) == ({}, {})
    assert issued["files_searched"] > 10
    assert (len(issued["persons"]), USER in repr(issued)) == (1, False)
    return 10_000 - int((home / "left").read_text()), issued, left(home)


def certificate(home: Path) -> Any:
    """Read the certificate without its time, and without how many files there are with those of a kill."""
    (issued,) = (json.loads(file.read_bytes()) for file in (home / CERTIFICATES).iterdir())
    return {**issued, "issued_at": None, "files_searched": issued["files_searched"] // 1000 or 11}


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


@pytest.mark.parametrize("moment", [1, 6, 12, 18])
def test_a_kill_at_any_change_of_a_file_leads_to_the_same_certificate(
    home: Path, undisturbed: tuple[int, Any, Any], forgets: Forgetting, moment: int
) -> None:
    changes, issued, files = undisturbed
    assert changes >= CHANGES
    assert forgets(home, changes * moment // CHANGES) == -signal.SIGKILL
    go_on(config.load())
    assert certificate(home) == issued
    assert left(home) == files


def test_a_search_names_files_and_no_value(home: Path, said: Said) -> None:
    code, text, _ = said("forget", "--search", USER)
    assert (code, USER in text) == (1, False)
    assert all(place in text for place in ("lake/silver/users/", "lake/refused/", "not searched: checkpoints/"))
    assert said("forget", "--search", "nobody-of-that-name")[0] == 0
    assert said("forget", "--search")[0] == 2


def test_what_is_left_is_named_in_the_certificate(home: Path) -> None:
    (home / "notes.txt").write_text(USER)
    go_on(config.load())
    assert certificate(home)["files_with_values"] == {"notes.txt": "bytes"}


def test_one_process_erases_at_a_time(home: Path, said: Said) -> None:
    with locked(home / ".forgetting.lock"):
        code, _, errors = said("forget")
    assert (code, "Another process has been at work" in errors) == (1, True)
    assert Journal(home).under_way() == FORGOTTEN


@pytest.mark.parametrize("of", ["silver.users", "stream visits"])
def test_it_waits_for_a_run_that_publishes_and_for_a_stream(home: Path, of: str) -> None:
    settings, owner = config.load(), owners.this_run()
    lake, key = Lake(root=str(settings.lake)), "2026-01-05" if "." in of else "visits"
    turns.claims(lake, of).take([key], owner)
    with pytest.raises(StillRemembered, match="could not be cleared everywhere") as raised:
        go_on(settings)
    assert of in raised.value.what
    turns.claims(lake, of).release([key], owner)
    go_on(settings)
    assert certificate(home)["files_with_values"] == {}
