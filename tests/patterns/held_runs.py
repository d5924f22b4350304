"""A run launcher that starts runs and leaves them running until a test ends them."""

from __future__ import annotations

from typing import Any

from dagster import DagsterEvent, DagsterEventType, DagsterInstance
from dagster._core.launcher import LaunchRunContext, RunLauncher
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from typing_extensions import Self


class HeldRuns(RunLauncher[DagsterInstance], ConfigurableClass):
    """Simulates the processes of runs at no cost; the queue cannot distinguish them from real ones."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Any) -> Self:
        return cls(inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        event = DagsterEvent(event_type_value=DagsterEventType.RUN_START.value, job_name=context.dagster_run.job_name)
        self._instance.report_dagster_event(event, run_id=context.dagster_run.run_id)

    def terminate(self, run_id: str) -> bool:
        return False
