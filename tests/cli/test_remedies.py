"""The library names actions that fix an error, which read as commands to type."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors.exceptions.connect import SparkException

from blogdata.cli import main
from blogdata.errors import PlatformError
from blogdata.errors.remedies import (
    Action,
    Diagnose,
    GoOnForgetting,
    Land,
    Query,
    Remedy,
    Replay,
    Rotate,
    Run,
    RunStream,
    ShowLedger,
    ShowMigrations,
    ShowRights,
    ShowService,
    StartService,
    WriteViews,
)
from blogdata.stream import stream_faults
from docs.pages import parse

ROOT = Path(__file__).parent.parent.parent
FILES = [file for folder in ("platform", "assets") for file in (ROOT / folder).rglob("*.py")]
LIBRARY = [file for file in FILES if file.parent != Path(main.__file__).parent and file.name != "remedies.py"]
"""All but the command line and the actions, which may name commands."""
SQL = "SELECT reasons, count(*) FROM bronze.visits WHERE arrival_hour = '2026-01-05T03' GROUP BY reasons"
TYPED: list[tuple[Action, str]] = [
    (Run(), "blogdata run"),
    (WriteViews(), "blogdata job share"),
    (Run(accept="size"), "blogdata run --accept size"),
    (
        Run(start="2025-12-22", end="2025-12-29", datasets=("silver.users", "gold.pages"), accept="frozen"),
        "blogdata run --from 2025-12-22 --to 2025-12-29 --select silver.users,gold.pages --accept frozen",
    ),
    (
        Replay(dataset="silver.visits", partitions="2026-01-05T03..2026-01-05T07"),
        "blogdata job replay dataset=silver.visits partitions=2026-01-05T03..2026-01-05T07",
    ),
    (ShowLedger(), "blogdata ledger"),
    (ShowLedger(dataset="gold.pages"), "blogdata ledger gold.pages"),
    (ShowRights(), "blogdata rights --roles"),
    (GoOnForgetting(), "blogdata forget"),
    (Rotate(key="visitor.key"), "blogdata job rotate key=visitor.key"),
    (ShowMigrations(), "blogdata schema migrations"),
    (Query(sql=SQL), f'blogdata sql "{SQL}"'),
    (Query(sql="SELECT ...", as_of="TIME"), 'blogdata sql "SELECT ..." --as-of TIME'),
    (Query(sql="SELECT '$HOME'"), "blogdata sql 'SELECT '\"'\"'$HOME'\"'\"''"),
    (RunStream(), "blogdata stream"),
    (RunStream(name="visits", new_checkpoint=True), "blogdata stream visits --new-checkpoint"),
    (Land(), "blogdata land --help"),
    (StartService(name="postgres"), "blogdata up postgres"),
    (ShowService(name="spark"), "blogdata status spark"),
    (Diagnose(), "blogdata doctor"),
]


@pytest.mark.parametrize(("action", "typed"), TYPED)
def test_an_action_is_a_command_that_exists(action: Action, typed: str) -> None:
    assert action.split(" (in the UI")[0] == typed
    parse(shlex.split(typed)[1:])


def test_library_messages_name_no_command() -> None:
    assert len(LIBRARY) > 100
    sources = {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in LIBRARY}
    modules = {name: ast.parse(source) for name, source in sources.items() if re.search(r"blogdata\s", source)}
    found = [f"{name}: {text}" for name, module in modules.items() for text in texts(module) if COMMAND.search(text)]
    assert not found, "name an action of blogdata.errors.remedies"


@pytest.mark.parametrize("action", [action for action, _ in TYPED])
def test_the_stream_workers_errors_name_the_action(action: Action) -> None:
    error = PlatformError(what="many", where="here", next_step=Remedy("look, then: ", action))
    text = stream_faults.packed(error)
    with pytest.raises(stream_faults.StreamFailed) as caught, stream_faults.unpacked("visits"):
        raise SparkException(f"Traceback ... {text}\n\nJVM stacktrace: ...")
    assert caught.value.next_step == error.next_step


COMMAND = re.compile(rf"blogdata\s+({'|'.join(main.COMMANDS)})\b")


def texts(module: ast.Module) -> Iterator[str]:
    """List every text of a module except documentation."""
    documentation = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value
