"""An erasure that is killed anywhere goes on to the same end: the same files, and the same certificate but for times.

Without Spark: what is computed again is killed by the crash campaigns (`tests/chaos`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli.pipeline import Pipeline
from blogdata.erasure.certificates import CertificateLine, certificates
from blogdata.erasure.journal import Erasure, Journal
from blogdata.erasure.search import search
from blogdata.lake.lake import Lake
from blogdata.operations import forget_steps
from blogdata.orchestration.partner import TOKENS, outbox
from blogdata.patterns.data_value.outbox import Row
from blogdata.services import config, secrets
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers
from blogdata.suppression.suppression_list import SECRET

USER, OTHER = "user-zq4711canary", "user-zq4712canary"
FORGOTTEN = Erasure(persons=Identifiers(user_ids=frozenset({USER})), at=1_767_614_400.0)
NEVER = datetime(1, 1, 1, tzinfo=timezone.utc)
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
        it.go_on(it.at_home())
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


def at_home() -> Settings:
    return config.load()


def go_on(settings: Settings) -> None:
    """Forget the user, or go on with it; nothing is published, so nothing is computed again."""
    steps = {name: step for name, step in forget_steps.STEPS.items() if step is not forget_steps.recompute}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forget_steps, "STEPS", MappingProxyType(steps))
        forget_steps.go_on(settings, Journal.of(settings), lambda _: None, Pipeline(settings))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with places of each kind, in which an erasure has begun."""
    home = tmp_path_factory.mktemp("whole") / "home"
    home.mkdir()
    made = config.load(overrides={"BLOGDATA_HOME": str(home)})
    for hour in ("10", "11"):
        folder = made.landing / "visits" / "date=2026-01-05" / f"hour={hour}"
        folder.mkdir(parents=True)
        lines = [{"user_id": user, "visit_id": f"of-{user}"} for user in (USER, OTHER)]
        (folder / "visits.json").write_text("".join(json.dumps(line) + "\\n" for line in lines))
    (folder / ".late.json.partial").write_text(USER)
    users = made.lake / "silver" / "users"
    for names in ([USER, OTHER], [USER], [OTHER]):
        write_deltalake(users, pa.table({"user_id": names}), mode="overwrite")
    shutil.copytree(users, made.lake / "refused" / "silver_users")
    for file in made.lake.rglob("*"):
        os.utime(file, (0, 0))
    state = made.checkpoints / "visits" / "v1" / "query" / "state" / "0" / "0"
    state.mkdir(parents=True)
    (state / "1.delta").write_bytes(gzip.compress(USER.encode()))
    rows = [Row(identity=[user], key=user, at=at, payload={"user": user}) for at, user in enumerate((USER, OTHER))]
    box = outbox(made)
    box.take("2026-01-05T10", "1", rows, rows_in=2, private=0)
    due = box.due(before="2026-01-06")
    box.number(due)
    box.taken(due)
    for name in (SECRET, TOKENS):
        secrets.read(made, name)
    Journal.of(made).begin(FORGOTTEN)
    return home


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
def undisturbed(
    whole: Path, forgets: Forgetting, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, list[CertificateLine], Any]:
    """How many changes an erasure makes, the certificate, and the files that are left."""
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    shutil.copytree(whole, home)
    assert forgets(home, 10_000) == 0
    found = _certificate(home)
    assert {line.place for line in found if line.files or line.rows} >= {
        "silver.users",
        "refused batches",
        "state of the stream visits",
        "partner.sqlite",
        "hidden files of the landing zone",
    }
    assert any("tell it to erase" in line.note for line in found)
    return 10_000 - int((home / "left").read_text()), found, _left(home)


def _certificate(home: Path) -> list[CertificateLine]:
    """Read the certificate without its time, and without how many files the search at the end has read."""
    lines = certificates(Lake(root=str(home / "lake")))
    return [replace(line, issued_at=NEVER, note=re.sub(r"^\d+ files were", "", line.note)) for line in lines]


def _left(home: Path) -> Any:
    """Return the landed files, and how many files each other place has."""
    assert search(home, [USER], ()).traces == ()
    assert search(home, [OTHER], ()).traces != ()
    landed = {
        str(file.relative_to(home)): file.read_bytes() for file in (home / "landing").rglob("*") if file.is_file()
    }
    places = ("lake/silver/users", "lake/refused", "checkpoints")
    counts = {place: sum(1 for file in (home / place).rglob("*") if file.is_file()) for place in places}
    return landed, counts, [path.name for path in home.glob("forgetting*")]


@pytest.mark.parametrize(
    "moment",
    [1, 6, 12, 18],
)
def test_a_kill_at_any_change_of_a_file_leads_to_the_same_certificate(
    whole: Path,
    undisturbed: tuple[int, list[CertificateLine], Any],
    forgets: Forgetting,
    tmp_path: Path,
    moment: int,
) -> None:
    changes, certificate, left = undisturbed
    assert changes >= CHANGES
    home = tmp_path / "home"
    shutil.copytree(whole, home)
    assert forgets(home, changes * moment // CHANGES) == -signal.SIGKILL
    go_on(config.load(overrides={"BLOGDATA_HOME": str(home)}))
    assert _certificate(home) == certificate
    assert _left(home) == left
