import functools

import dagster as dg
import pytest
from dagster._core.execution.stats import StepEventStatus
from deltalake import DeltaTable

import definitions
from assets.silver import enriched as asset
from blogdata.operate import config, dagster_home
from blogdata.runs.refresh_request import JOB
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment, event

__all__ = ("deploy",)

ENRICHED, PLACES = "silver.visits_enriched", "silver.places"
GOOGLE, QUAD9, RESERVED = "8.8.8.8", "9.9.9.9", "10.0.0.1"


@pytest.mark.parametrize(
    ("address", "outcome", "country"),
    [
        (GOOGLE, "found", "US"),
        (f"::ffff:{GOOGLE}", "found", "US"),
        ("2001:4860:4860::8888%eth0", "found", "US"),
        (RESERVED, "reserved", None),
        ("fe80::1%eth0", "reserved", None),
        ("no address", "reserved", None),
        ("8.8.8.8, 9.9.9.9", "reserved", None),
        ("%" * 9000, "reserved", None),
        ("", "reserved", None),
    ],
)
def test_an_address_has_one_row_as_received(address: str, outcome: str, country: str | None) -> None:
    assert asset.look_up([address]) == [(address, outcome, country)]


@functools.cache
def job() -> dg.JobDefinition:
    return definitions.build(config.load()).resolve_job_def(JOB)


def refresh() -> dg.JobDefinition:
    """Return what Dagster asks for several times, by the name of a function that is not wrapped."""
    return job()


def steps(made: Deployment) -> dict[str, bool]:
    with dagster_home.open_instance(made.settings) as instance:
        (run,) = instance.get_runs(limit=1)
        stats = instance.get_run_step_stats(run.run_id, ["silver__places", "silver__visits_enriched"])
    return {step.step_key: step.status is StepEventStatus.SUCCESS for step in stats}


def land(made: Deployment, hour: int, *addresses: str) -> None:
    contexts = [{"technical": {"browser": "Firefox"}, "user": {"ip": address}} for address in addresses]
    visits = [event(f"{hour:02}:05", f"/{at}", context=context) for at, context in enumerate(contexts)]
    made.land(f"2026-01-05T{hour:02}", visits)


def test_a_failure_behind_the_lookup_does_not_repeat_it(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    made = deploy("places")
    land(made, 1, GOOGLE, RESERVED)
    assert made.run(for_=[ENRICHED]).problems == []

    DeltaTable(made.lake.path(ENRICHED)).alter.add_constraint({"theirs": "event_hour <> '2026-01-05T02'"})
    land(made, 2, GOOGLE, QUAD9)
    outcome = made.run(for_=[ENRICHED])
    assert [problem for problem in outcome.problems if "theirs" in problem]
    assert [step["rows"] for step in outcome.steps if step["dataset"] == PLACES] == [1], "no other is written again"
    assert steps(made) == {"silver__places": True, "silver__visits_enriched": False}
    version = made.lake.version(PLACES)

    DeltaTable(made.lake.path(ENRICHED)).alter.drop_constraint("theirs")
    monkeypatch.setenv("BLOGDATA_HOME", str(made.settings.home))
    # What failed is executed again, as the button of Dagster's page does.
    with dagster_home.open_instance(made.settings) as instance:
        (run,) = instance.get_runs(limit=1)
        options = dg.ReexecutionOptions.from_failure(run.run_id, instance)
        with dg.execute_job(dg.reconstructable(refresh), instance, reexecution_options=options) as result:
            assert result.success
    assert steps(made) == {"silver__visits_enriched": True}, "the lookup is not executed again"
    assert made.lake.version(PLACES) == version
    ((_, verdict, country),) = asset.look_up([QUAD9])
    assert sorted(made.rows(ENRICHED, "event_hour", "page", "country", "place_outcome")) == [
        ("2026-01-05T01", "/0", "US", "found"),
        ("2026-01-05T01", "/1", None, "reserved"),
        ("2026-01-05T02", "/0", "US", "found"),
        ("2026-01-05T02", "/1", country, verdict),
    ]
    assert sorted(made.rows(PLACES, "ip")) == sorted([GOOGLE, QUAD9, RESERVED])
    assert made.problems() == []
