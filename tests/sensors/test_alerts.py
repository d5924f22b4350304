"""Every minute, standing findings are sent as alerts; a failing channel fails the tick."""

from __future__ import annotations

import dagster as dg
import pytest

from alert_servers import web_server
from blogdata.files import locked
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.watch.alerting import AlertsNotSent
from published import land
from sensors.watching import tell_people


def test_a_tick_tells_of_what_stands(
    lake: LakeResource, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = lake.landing_path.parent
    deployment = DeploymentResource(home=str(home))

    def skip_reason() -> str:
        context = dg.build_sensor_context(instance=instance, resources={"deployment": deployment})
        return str(tell_people.evaluate_tick(context).skip_message)

    assert tell_people.default_status == dg.DefaultSensorStatus.RUNNING
    assert skip_reason() == "no channel is configured: [[alerts]] in blogdata.toml"
    with web_server() as hook:
        (home / "blogdata.toml").write_text(f'[[alerts]]\nname = "hook"\naddress = "{hook.channel}"\n')
        land(lake, "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
        assert [skip_reason() for _ in range(2)] == ["messages sent: 1", "messages sent: 0"]
        hook.answers = [(404, {})]
        land(lake, "ads", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
        with pytest.raises(AlertsNotSent, match="error=404"):
            skip_reason()
        assert skip_reason() == "messages sent: 1"
        monkeypatch.setattr("sensors.watching._LOCK_SECONDS", 0.2)
        with locked(deployment.settings().service_folder("alerts") / "lock"):
            assert skip_reason() == "another process is sending what is due"
