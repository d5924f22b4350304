"""Static Joiner, Local Sequencer: places are requested once and joined as of the event, whatever the service does."""

from __future__ import annotations

import ipaddress
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.stats import StepEventStatus

import definitions
from assets.silver import places as asset
from assets.transforms.live_enriched import STREAM
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.refresh_request import JOB
from blogdata.orchestration.step import FullDelivery, InputChanged
from blogdata.services import config, dagster_home, locations
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.locations import LocationFaults, LocationServer, serving
from blogdata.simulator.spec import SimulationSpec
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event

pytestmark = pytest.mark.campaign
STEPS = ("landing__place_answers", "silver__places")
"""The step that pays, and the one that publishes."""
SPEC = SimulationSpec(days=1, visits_per_day=6000, seed=11, faults=FaultRates.none(duplicate=0.01, null_field=0.02))
MORNING, EVENING = [f"2026-01-05T{hour:02}" for hour in range(3)], ["2026-01-05T20"]
FAULTS = LocationFaults.every(0.05)
LIVE = "silver.visits_enriched_live"
PLACE = ("country", "region", "city", "place_outcome")


@dataclass(frozen=True)
class World:
    """A deployment with a faulty location service, and a landing zone to copy hours from."""

    deployment: Deployment
    server: LocationServer
    source: Path

    def land(self, hours: list[str]) -> None:
        for hour in hours:
            at = f"visits/date={hour[:10]}/hour={hour[11:]}"
            shutil.copytree(self.source / at, self.deployment.landing / at)

    def expected(self, address: str | None, private: bool) -> tuple[Any, ...]:
        if address is None or private:
            return None, None, None, "kept_private" if address else None
        if not ipaddress.ip_address(address).is_global:
            return None, None, None, "reserved"
        truth = self.server.truth(address)
        return (*(truth.get(name) for name in PLACE[:3]), truth.get("error", "found"))

    def refuse(self, rule: str) -> None:
        """Add a rule of their own to the table, as a person does who looks for something."""
        self._alter(f"ADD CONSTRAINT theirs CHECK ({rule})")

    def allow(self) -> None:
        """Remove that rule."""
        self._alter("DROP CONSTRAINT theirs")

    def _alter(self, how: str) -> None:
        with self.deployment.session() as spark:
            spark.sql(f"ALTER TABLE delta.`{self.deployment.lake.path('silver.places')}` {how}").collect()

    def steps(self) -> dict[str, bool]:
        """Return the steps of the newest run around the table that have ended, with whether they succeeded."""
        with dagster_home.open_instance(self.deployment.settings) as instance:
            (run,) = instance.get_runs(limit=1)
            stats = instance.get_run_step_stats(run.run_id, [*STEPS, "silver__visits"])
        return {one.step_key: one.status is StepEventStatus.SUCCESS for one in stats}

    def again_from_failure(self) -> bool:
        """Execute again what has failed of the newest run, as the button of Dagster's page does."""
        with dagster_home.open_instance(self.deployment.settings) as instance:
            (run,) = instance.get_runs(limit=1)
            options = dg.ReexecutionOptions.from_failure(run.run_id, instance)
            with dg.execute_job(dg.reconstructable(refresh), instance, reexecution_options=options) as result:
                return bool(result.success)

    def materialized(self, *names: str) -> bool:
        """Materialize assets, as the button of Dagster's page does; return whether all succeeded."""
        with dagster_home.open_instance(self.deployment.settings) as instance:
            job = definitions.build(self.deployment.settings).resolve_implicit_global_asset_job_def()
            return job.execute_in_process(instance=instance, asset_selection=[*map(asset_key, names)]).success

    def joined(self, dataset: str = "silver.visits_enriched") -> Counter[tuple[Any, ...]]:
        return Counter(self.deployment.rows(dataset, "visit_id", "event_time", "page", *PLACE))

    def truth(self) -> Counter[tuple[Any, ...]]:
        rows = self.deployment.rows("silver.visits", "visit_id", "event_time", "page", "ip", "keep_private")
        return Counter((*row[:3], *self.expected(*row[3:])) for row in rows)


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    home = deploy("places").settings.home
    with serving(LocationServer(seed=5, slow=1.2)) as server:
        settings = home / "blogdata.toml"
        more = f'\n[geolocation]\nurl = "{server.url}"\nrate = 1000\ntime_out = 0.5\n'
        settings.write_text(settings.read_text(encoding="utf-8") + more, encoding="utf-8")
        yield World(Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)})), server, source)


def refresh() -> dg.JobDefinition:
    """Load the job of the deployment in BLOGDATA_HOME, as a process of Dagster does."""
    return definitions.build(config.load()).resolve_job_def(JOB)


def test_places_go_from_waiting_to_true(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(MORNING)
    world.deployment.land(
        MORNING[1], [_visit("/reserved", "10.0.0.1"), _visit("/kept", "8.8.8.8", keep_private=True)], "more.json"
    )
    withdrawn = world.deployment.land(MORNING[1], [_visit("/withdrawn", "9.9.9.9")], "withdrawn.json")
    world.server.down = True
    with monkeypatch.context() as patch:
        patch.setattr(locations, "_TRIES", 2)
        world.deployment.run(for_=["silver.visits_enriched"])
    waiting = world.joined()
    assert sum(waiting.values()) == sum(world.truth().values())
    assert {row[-1] for row in waiting} == {"waiting", "reserved", "kept_private", None}
    assert not world.server.paid
    live.tick(world.deployment, STREAM)
    assert world.joined(LIVE) == waiting

    world.server.down = False
    # Their visitor withdraws consent: the waiting question is withdrawn.
    assert "9.9.9.9" in world.deployment.rows("silver.places", "ip")
    withdrawn.write_bytes(_visit("/withdrawn", "9.9.9.9", keep_private=True) + b"\n")
    # The table refuses the answers, which are paid for.
    world.refuse("outcome <> 'found'")
    outcome = world.deployment.run(for_=["silver.visits_enriched"])
    assert [problem for problem in outcome.problems if "theirs" in problem]
    assert world.steps() == {"silver__visits": True, STEPS[0]: True, STEPS[1]: False}
    taken = world.server.paid.copy()
    assert taken
    monkeypatch.setenv("BLOGDATA_HOME", str(world.deployment.settings.home))
    assert not world.again_from_failure()
    assert world.steps() == {STEPS[1]: False}, "what has paid is not executed again"
    world.allow()
    with monkeypatch.context() as patch:
        # And once more it fails in a way that passes: Dagster tries the step again.
        patch.setattr(asset, "FullDelivery", failing_once())
        assert world.again_from_failure()
    assert world.steps() == {STEPS[1]: True}
    outcome = world.deployment.run(for_=["silver.visits_enriched"])
    assert world.joined() == world.truth()
    assert outcome.problems == []
    assert world.deployment.problems() == []
    assert "waiting" not in {row[-1] for row in world.joined()}
    assert "9.9.9.9" not in world.deployment.rows("silver.places", "ip")

    paid = world.server.paid.copy()
    assert paid == taken
    assert set(paid.values()) == {1}
    visits = world.deployment.rows("silver.visits", "ip", "keep_private")
    assert set(paid) == {ip for ip, private in visits if ip and not private and ipaddress.ip_address(ip).is_global}

    world.deployment.rest("silver.places")
    world.land(EVENING)
    live.tick(world.deployment, STREAM)
    world.server.faults = FAULTS
    # A person materializes both steps, of which the second waits for the first; a run asks for what has no answer yet.
    world.deployment.run(for_=["silver.visits"])
    assert world.materialized("landing.place_answers", "silver.places")
    assert world.steps() == dict.fromkeys(STEPS, True)
    world.deployment.run(for_=["silver.visits_enriched"])
    assert world.joined() == world.truth()
    assert {address: world.server.paid[address] for address in paid} == paid
    # A stream joins the places known when an event lands: waiting events stay unresolved.
    evening, true = world.joined(LIVE) - waiting, world.joined()
    assert waiting.total() + evening.total() == true.total()
    assert {row[:3] for row in evening} == {row[:3] for row in true} - {row[:3] for row in waiting}
    assert all(row in true or row[-1] == "waiting" for row in evening)
    assert {row[-1] for row in evening} == {"found", "waiting", "kept_private", None}


def _visit(page: str, address: str, **more: object) -> bytes:
    technical = {"browser": "Firefox", "device_type": "PC"}
    return event("01:05", page, context={"user": {"ip": address}, "technical": technical}, **more)


def failing_once() -> Callable[..., FullDelivery]:
    """Return what makes deliveries, after it has failed once."""
    faults = [InputChanged(what="another run was faster", where="silver.visits", next_step="try again")]

    def made(**of: Any) -> FullDelivery:
        if faults:
            raise faults.pop()
        return FullDelivery(**of)

    return made
