"""The terminal of a person while a job runs; without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUN = """
import sys, time
import dagster as dg
from blogdata.cli.outcome import Outcome
from blogdata.cli.output import Screen
from blogdata.cli.progress import RunProgress
from blogdata.services import config, dagster_home
from blogdata.services.dagster_internals import InMemoryJob, execute_run_iterator

def published(name, rows, seconds):
    return dg.AssetMaterialization(name.split("."), metadata={"dagster/row_count": rows, "seconds": seconds})

@dg.op
def bronze__visits(context):
    print("from Python")
    sys.stderr.write("half a ")
    time.sleep(0.3)
    sys.stderr.write("line\\n")
    context.log_event(published("bronze.visits", 301587, 42.0))
    return 0

@dg.op
def gold__campaign_audience_hourly(context, above):
    context.log_event(published("gold.campaign_audience_hourly", 2, 1.0))

@dg.job(executor_def=dg.in_process_executor)
def refresh():
    gold__campaign_audience_hourly(bronze__visits())

screen, outcome = Screen(shown=True), Outcome()
with dagster_home.open_instance(config.load()) as instance, screen.opened():
    screen.print("everything that is stale")
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    run = instance.create_run_for_job(job_def=refresh, run_config=quiet)
    progress = RunProgress(screen, outcome)
    for event in execute_run_iterator(InMemoryJob(refresh), run, instance):
        progress.see(event)
print("done")
"""
FIGURES = [
    "  bronze.visits                       301,587 rows    42.0 s      7,181 rows/s",
    "  gold.campaign_audience_hourly             2 rows     1.0 s          2 rows/s",
]


def test_a_pipe_gets_every_line_of_the_run_and_no_status(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "BLOGDATA_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert [line for line in done.stdout.splitlines() if "from" not in line] == [
        "everything that is stale",
        *FIGURES,
        "done",
    ]
