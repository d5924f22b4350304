"""The library names actions that fix an error; the command line renders the commands to type."""

from __future__ import annotations

import ast
import pickle
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import SparkException

import definitions
from blogdata.cli import main, remedies
from blogdata.errors import DiskFull, PlatformError
from blogdata.errors import remedies as actions
from blogdata.errors.remedies import (
    ACTIONS,
    Action,
    Diagnose,
    GoOnForgetting,
    Land,
    Query,
    Remedy,
    RemoveColumn,
    Repair,
    Replay,
    Rotate,
    Run,
    RunStream,
    ShowLedger,
    ShowMigrations,
    ShowRights,
    ShowService,
    StartService,
    WithdrawShare,
    WriteViews,
)
from blogdata.orchestration import stream_faults
from blogdata.orchestration.names import ACCEPT
from blogdata.patterns.error_management import dead_letter
from docs.pages import parse

ROOT = Path(__file__).parent.parent.parent
FILES = [file for folder in ("platform", "assets") for file in (ROOT / folder).rglob("*.py")]
LIBRARY = [file for file in FILES if file.parent != Path(remedies.__file__).parent]
"""All but the command line, which may name its commands."""
SQL = "SELECT reasons, count(*) FROM bronze.visits WHERE arrival_hour = '2026-01-05T03' GROUP BY reasons"
TYPED: list[tuple[Action, str]] = [
    (Run(), "blogdata run"),
    (WriteViews(), "blogdata job share"),
    (WithdrawShare(dataset="gold.page_stats"), "blogdata job share dataset=gold.page_stats withdraw=true"),
    (Run(accept="size"), "blogdata run --accept size"),
    (
        Run(start="2025-12-22", end="2025-12-29", datasets=("silver.users", "gold.pages"), accept="frozen"),
        "blogdata run --from 2025-12-22 --to 2025-12-29 --select silver.users,gold.pages --accept frozen",
    ),
    (
        Replay(dataset="silver.visits", partitions="2026-01-05T03..2026-01-05T07"),
        "blogdata plan --replay silver.visits --partitions 2026-01-05T03..2026-01-05T07",
    ),
    (Repair(), "blogdata job repair"),
    (ShowLedger(), "blogdata ledger"),
    (ShowLedger(dataset="gold.pages"), "blogdata ledger gold.pages"),
    (ShowRights(), "blogdata rights --roles"),
    (GoOnForgetting(), "blogdata forget"),
    (Rotate(key="visitor.key"), "blogdata job rotate key=visitor.key"),
    (ShowMigrations(), "blogdata schema migrations"),
    (RemoveColumn(dataset="gold.referral_stats", column="users"), "blogdata schema remove gold.referral_stats users"),
    (Query(sql=SQL), f'blogdata sql "{SQL}"'),
    (Query(sql="SELECT ...", as_of="TIME"), 'blogdata sql "SELECT ..." --as-of TIME'),
    (Query(sql="SELECT '$HOME'"), "blogdata sql 'SELECT '\"'\"'$HOME'\"'\"''"),
    (RunStream(), "blogdata stream"),
    (RunStream(name="visits", new_checkpoint=True), "blogdata stream visits --new-checkpoint"),
    (RunStream(once=True, accept="dead_letters"), "blogdata stream --once --accept dead_letters"),
    (Land(), "blogdata land --help"),
    (StartService(name="postgres"), "blogdata up postgres"),
    (ShowService(name="spark"), "blogdata status spark"),
    (Diagnose(), "blogdata doctor"),
]


@pytest.mark.parametrize(("action", "typed"), TYPED)
def test_an_action_is_a_command_that_exists(action: Action, typed: str) -> None:
    assert remedies.command(action) == typed
    parse(shlex.split(typed)[1:])


def test_every_action_has_a_tested_command() -> None:
    assert {type(action) for action, _ in TYPED} == {*ACTIONS.values()}


def test_a_query_is_quoted_for_the_shell() -> None:
    for sql in (SQL, "SELECT '$HOME'", "SELECT \"a\", 'b' FROM `c!`", "SELECT 1"):
        assert shlex.split(remedies.command(Query(sql=sql))) == ["blogdata", "sql", sql]


def test_a_run_lifting_a_guard_names_its_tag() -> None:
    assert remedies.said(Run(accept="size")).endswith(f"(in the UI: the run's tag {ACCEPT}=size)")
    assert remedies.said(Run()) == "blogdata run"


def test_library_messages_name_no_command() -> None:
    assert len(LIBRARY) > 100
    modules = {str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8")) for file in LIBRARY}
    found = [f"{name}: {text}" for name, module in modules.items() for text in texts(module) if COMMAND.search(text)]
    assert not found, "name an action of blogdata.errors.remedies"


def test_a_command_in_a_message_would_be_found() -> None:
    module = ast.parse('"""Say `blogdata run`."""\nstep = f"mend {it}, then: blogdata run"\nother = "blogdata/accept"')
    assert [text for text in texts(module) if COMMAND.search(text)] == [", then: blogdata run"]


def test_actions_read_as_plain_words_without_a_cli(neutral: None) -> None:
    error = PlatformError(
        what="torn",
        where="gold.pages",
        next_step=Remedy("mend it: ", Repair(), "; then: ", Run(datasets=("gold.pages", "gold.users"), accept="size")),
    )
    assert error.next_step == ("mend it: repair the tables; then: run (datasets: gold.pages, gold.users; accept: size)")
    assert str(RunStream(name="visits", once=True)) == "run the stream (name: visits; once)"
    assert "blogdata" not in "".join(str(action) for action, _ in TYPED)


def test_an_error_takes_the_wording_of_its_process(neutral: None) -> None:
    error = pickle.loads(pickle.dumps(DiskFull("/data")))
    assert "check the deployment" in str(error)
    remedies.register()
    assert (error.what, error.where) == ("the disk is full", "/data")
    assert error.next_step.startswith("free space (see it by blogdata doctor) and run it again")
    assert str(error) == f"the disk is full\n  where: /data\n  next:  {error.next_step}"


def test_a_remedy_within_a_remedy_keeps_its_actions() -> None:
    inner = Remedy("go on: ", Run(accept="dead_letters"))
    assert Remedy("count them: ", Query(sql="SELECT 1"), "; then ", inner).parts == (
        "count them: ",
        Query(sql="SELECT 1"),
        "; then ",
        "go on: ",
        Run(accept="dead_letters"),
    )


@pytest.mark.parametrize("action", [action for action, _ in TYPED])
def test_the_client_words_the_stream_workers_errors(action: Action, neutral: None) -> None:
    error = dead_letter.TooManyDeadLetters(what="many", where="here", next_step=Remedy("look, then: ", action))
    text = stream_faults.packed(error)
    remedies.register()
    with pytest.raises(dead_letter.TooManyDeadLetters) as caught, stream_faults.unpacked("visits"):
        raise SparkException(f"Traceback ... {text}\n\nJVM stacktrace: ...")
    assert caught.value.remedy == error.remedy
    assert "blogdata " in caught.value.next_step


def test_a_commands_error_names_the_next_command(
    neutral: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["blogdata", "plan", "--replay", "gold.page_stats", "--partitions", "all"])
    with pytest.raises(SystemExit):
        main.main()
    assert "next:  land something first: blogdata land --help" in capsys.readouterr().err


def test_loading_the_definitions_makes_remedies_name_commands(
    neutral: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    definitions.defs()
    assert str(Remedy("run: ", Run())) == "run: blogdata run"


@pytest.fixture
def neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a command line."""
    monkeypatch.setattr(actions, "_say", str)


COMMAND = re.compile(rf"blogdata\s+({'|'.join(main.COMMANDS)})\b")


def texts(module: ast.Module) -> Iterator[str]:
    """List every text of a module except documentation."""
    documentation = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value
