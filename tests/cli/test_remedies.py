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
from blogdata.errors import PlatformError, TransientError
from blogdata.errors import remedies as to
from blogdata.errors.remedies import Action, Query, Remedy, Run
from blogdata.stream import stream as streams
from docs.pages import parse

ROOT = Path(__file__).parent.parent.parent
FILES = [file for folder in ("platform", "assets") for file in (ROOT / folder).rglob("*.py")]
LIBRARY = [file for file in FILES if file.parent != Path(main.__file__).parent and file.name != "remedies.py"]
"""All but the command line and the actions, which may name commands."""
SQL = "SELECT reasons, count(*) FROM bronze.visits WHERE arrival_hour = '2026-01-05T03' GROUP BY reasons"
TYPED: list[tuple[Action, str]] = [
    (Run(), "blogdata run"),
    (to.WriteViews(), "blogdata job share"),
    (Run(accept="size"), "blogdata run --accept size"),
    (Run(start="2025-12-22", end="2025-12-29"), "blogdata run --from 2025-12-22 --to 2025-12-29"),
    (Run(datasets=("silver.users", "gold.pages")), "blogdata run --select silver.users,gold.pages"),
    (to.Replay(dataset="gold.pages", partitions="A..B"), "blogdata job replay dataset=gold.pages partitions=A..B"),
    (to.ShowLedger(), "blogdata ledger"),
    (to.ShowLedger(dataset="gold.pages"), "blogdata ledger gold.pages"),
    (to.ShowRights(), "blogdata rights --roles"),
    (to.GoOnForgetting(), "blogdata forget"),
    (to.Rotate(key="visitor.key"), "blogdata job rotate key=visitor.key"),
    (to.ShowMigrations(), "blogdata schema migrations"),
    (Query(sql=SQL), f'blogdata sql "{SQL}"'),
    (Query(sql="SELECT ...", as_of="TIME"), 'blogdata sql "SELECT ..." --as-of TIME'),
    (Query(sql="SELECT '$HOME'"), "blogdata sql 'SELECT '\"'\"'$HOME'\"'\"''"),
    (to.RunStream(), "blogdata stream"),
    (to.RunStream(name="visits", new_checkpoint=True), "blogdata stream visits --new-checkpoint"),
    (to.Land(), "blogdata land --help"),
    (to.StartService(name="postgres"), "blogdata up postgres"),
    (to.ShowService(name="spark"), "blogdata status spark"),
    (to.Diagnose(), "blogdata doctor"),
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


@pytest.mark.parametrize("action", [Run(accept="size"), Query(sql=SQL)])
def test_the_stream_workers_errors_name_the_action(action: Action) -> None:
    error = PlatformError(what="many", where="here", next_step=Remedy("look, then: ", action))
    text = streams.packed(error)
    with pytest.raises(streams.StreamFailed) as caught, streams.unpacked("visits"):
        raise SparkException(f"Traceback ... {text}\n\nJVM stacktrace: ...")
    assert caught.value.next_step == error.next_step


@pytest.mark.parametrize(
    ("text", "kind"), [("Python worker failed to connect back.", TransientError), ("another error", SparkException)]
)
def test_only_a_late_stream_worker_is_a_transient_fault(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind), streams.unpacked("visits"):
        raise SparkException(f"{text}\n\nJVM stacktrace: ...")


COMMAND = re.compile(rf"blogdata\s+({'|'.join(main.COMMANDS)})\b")


def texts(module: ast.Module) -> Iterator[str]:
    """List every text of a module except documentation."""
    documentation = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value
