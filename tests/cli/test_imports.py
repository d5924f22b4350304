"""A command imports the packages it needs, and the list of commands imports none of them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"dagster", "pyspark", "great_expectations", "pandas", "sqlalchemy", "psycopg", "grpc"}
OF_TABLES = {"deltalake", "pyarrow"}
PLAN = (
    "blogdata.runs.turns",
    "blogdata.planning.clock",
    "blogdata.planning.plan",
    "blogdata.landing.full_loader",
    "blogdata.operate.postgres",
    "blogdata.operate.spark_attached",
)
LOADED = 'print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)'
TYPED = f"""
import sys
from blogdata.cli.main import main
sys.argv[1:], typed = [], sys.argv[1:]
for words in typed:
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit:
        {LOADED}
"""


def imported(program: str, home: Path, *arguments: str) -> tuple[str, list[set[str]]]:
    """Run a program; return its output, and the packages it had imported after each argument."""
    environment = {**os.environ, "BLOGDATA_HOME": str(home)}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, [set(ast.literal_eval(line)) for line in done.stderr.splitlines() if line.startswith("[")]


@pytest.mark.parametrize(
    ("commands", "without"),
    [
        (("--help", "run --help", "land simulate --help"), HEAVY | OF_TABLES),
        (("ledger", "metrics", "report", "status"), HEAVY),
    ],
)
def test_a_command_imports_no_package_that_it_does_not_need(
    tmp_path: Path, commands: tuple[str, ...], without: set[str]
) -> None:
    said, found = imported(TYPED, tmp_path, *commands)
    assert said
    assert [packages & without for packages in found] == [set()] * len(commands)


@pytest.mark.parametrize(("modules", "without"), [(("quality.contracts",), HEAVY | OF_TABLES), (PLAN, HEAVY)])
def test_declaring_and_planning_import_no_heavy_package(
    tmp_path: Path, modules: tuple[str, ...], without: set[str]
) -> None:
    _, (found,) = imported(f"import sys\nimport {', '.join(modules)}\n{LOADED}", tmp_path)
    assert not found & without
