"""Every minute, standing findings are sent as alerts; a failing channel fails the tick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from alert_servers import Posted, web_server
from blogdata.files import locked
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.watch.alerting import AlertsNotSent
from published import land
from sensors.watching import tell_people


@pytest.fixture
def hook() -> Iterator[Posted]:
    """A web server that receives messages."""
    with web_server() as posted:
        yield posted


def resource(lake: LakeResource) -> DeploymentResource:
    """The resource of a lake's deployment."""
    return DeploymentResource(home=str(Path(lake.landing).parent))


def skip_reason(lake: LakeResource, instance: dg.DagsterInstance) -> str:
    """Run one tick of the sensor; return its skip reason."""
    context = dg.build_sensor_context(instance=instance, resources={"deployment": resource(lake)})
    return str(tell_people.evaluate_tick(context).skip_message)


def test_a_tick_tells_of_what_stands(
    lake: LakeResource, instance: dg.DagsterInstance, hook: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tell_people.default_status == dg.DefaultSensorStatus.RUNNING
    assert skip_reason(lake, instance) == "no channel is configured: [[alerts]] in blogdata.toml"
    assert (Path(lake.landing).parent / "ticks" / "alerts").exists()
    toml = Path(lake.landing).parent / "blogdata.toml"
    toml.write_text(f'[[alerts]]\nname = "hook"\naddress = "{hook.channel}"\n')
    land(lake, "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    assert [skip_reason(lake, instance) for _ in range(2)] == ["messages sent: 1", "messages sent: 0"]
    # A finding that is over is not told of; another one is.
    land(lake, "visits", "2026-01-05T03", {})
    assert skip_reason(lake, instance) == "messages sent: 0"
    land(lake, "ads", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    hook.answers = [(404, {})]
    with pytest.raises(AlertsNotSent, match="error=404"):
        skip_reason(lake, instance)
    assert skip_reason(lake, instance) == "messages sent: 1"
    monkeypatch.setattr("sensors.watching._LOCK_SECONDS", 0.2)
    with locked(resource(lake).settings().service_folder("alerts") / "lock"):
        assert skip_reason(lake, instance) == "another process is sending what is due"
