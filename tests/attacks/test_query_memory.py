"""A query of a role that needs more memory than there is ends neither the server of runs nor the next query."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.services import spark_connect
from blogdata.services.config import Settings

HUGE = "SELECT max(length(repeat(page, 2000000000))) FROM gold.page_stats"


@pytest.fixture
def home(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A home whose lake has a page that a partner sees; its Spark runs."""
    (tmp_path / "blogdata.toml").write_text('[spark]\nheap = "600m"\n', encoding="utf-8")
    spark = replace(settings.spark, heap="600m", conf=())
    mine = replace(settings, home=tmp_path, landing=tmp_path / "landing", lake=tmp_path / "lake", spark=spark)
    rows = pa.table({"event_date": [date(2026, 1, 5)], "page": ["/"], "events": [9], "users": [9]})
    write_deltalake(str(mine.lake / "gold" / "page_stats"), rows, partition_by=["event_date"])
    spark_connect.running_server(mine)
    yield mine
    spark_connect.stop(mine)


def asked(home: Settings, query: str, *more: str) -> tuple[int, str, str]:
    """Query in a process of its own, as a person does."""
    command = [sys.executable, "-m", "blogdata", "sql", query, *more]
    environment = {**os.environ, "BLOGDATA_HOME": str(home.home), "BLOGDATA_JARS": str(home.jars)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.campaign
def test_a_partners_query_ends_no_server_of_runs_and_says_what_was_lacking(home: Settings) -> None:
    runs = spark_connect.status(home).pid
    code, _, err = asked(home, HUGE, "--as", "partner")
    assert code == 2, err
    what, where, _ = err.splitlines()
    assert what == "error: the query needed more memory than its Spark server has"
    assert where.strip() == f"where: '{HUGE}'"
    code, out, err = asked(home, "SELECT page FROM gold.page_stats", "--as", "partner", "--json")
    assert (code, '"/"' in out) == (0, True), err
    assert runs is not None
    assert spark_connect.running_server(home).pid == runs
    assert spark_connect.status(spark_connect.of_roles(home)).pid not in (None, runs)
