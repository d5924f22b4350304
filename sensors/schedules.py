"""The schedules: each day and week is computed after its end, complete or not.

Hours have no schedule: the sensor in `sensors/refresh.py` requests them when they have landed.
"""

from __future__ import annotations

import dagster as dg

from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.schedule import Clock
from blogdata.deliver import staging
from blogdata.planning.staleness import Scope
from blogdata.privacy import retention
from blogdata.runs.lake_resource import DeploymentResource
from blogdata.runs.refresh_request import JOB, Request
from quality.contracts import CONTRACTS
from sensors import jobs, run_requests
from sensors.run_requests import EVERYTHING

_PERIODS = {Clock.NIGHTLY: Grain.DAY, Clock.WEEKLY: Grain.WEEK}


def _clock(clock: Clock, status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    datasets = [name for name, contract in CONTRACTS.items() if contract.runs.at is clock]

    @dg.schedule(
        name=clock.name.lower(),
        cron_schedule=clock.value,
        job_name=JOB,
        default_status=status,
        description=f"What is stale of each {_PERIODS[clock].value} that has ended, complete or not",
        tags={**EVERYTHING, "pattern/static-late-data-integrator": ""},
    )
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        current = key_of(context.scheduled_execution_time - _PERIODS[clock].length, _PERIODS[clock])
        request, about = Request(datasets=datasets, scope=Scope.ENDED.value), f"{clock.name.lower()}, until {current}"
        return run_requests.refresh_request(current, request, about=about, tags={})

    return tick


def _replicate(status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="replicate_at_half_past_five",
        cron_schedule="30 5 * * *",
        job=staging.job,
        default_status=status,
        description="The copies for staging",
        tags={**EVERYTHING, "pattern/transformation-replicator": ""},
    )
    def tick(deployment: DeploymentResource) -> dg.RunRequest | dg.SkipReason:
        return dg.SkipReason("no folder is named") if deployment.settings().staging is None else dg.RunRequest()

    return tick


def schedules(status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED) -> list[dg.ScheduleDefinition]:
    def of_job(name: str, job: dg.UnresolvedAssetJobDefinition, cron: str, description: str) -> dg.ScheduleDefinition:
        return dg.ScheduleDefinition(
            name=name, job=job, cron_schedule=cron, description=description, tags=EVERYTHING, default_status=status
        )

    return [
        *(_clock(clock, status) for clock in Clock),
        of_job("data_docs_at_four", jobs.data_docs, "0 4 * * *", "The Data Docs of the day"),
        of_job("profiles_at_a_quarter_past_four", jobs.profiles, "15 4 * * *", "The profiles of what is new"),
        of_job("lineage_at_half_past_four", jobs.lineage, "30 4 * * *", "The lineage of what was published"),
        of_job("maintain_each_hour", jobs.maintain, "20 * * * *", "Compact tables, and remove files nobody needs"),
        of_job("report_each_hour", jobs.report, "10 * * * *", "The page about the blog and its data"),
        of_job("freeze_on_the_first", jobs.freeze, "0 5 1 * *", "Freeze the past years whose weeks are final"),
        of_job("retention_at_five", retention.job, "0 5 * * *", "Remove what is older than its contract keeps it"),
        _replicate(status),
    ]
