"""Everything the platform imports from Dagster's private modules, with the reason for each name.

Dagster may change these without notice, so they are imported here only, and `tests/services/test_dagster_internals.py`
records their signatures. After an upgrade of Dagster that test names what to review; then set :data:`REVIEWED`.

Importing this module imports Dagster and its SQLite storage: commands that answer at once must not.
"""

from __future__ import annotations

from collections.abc import Mapping

from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.errors import raise_execution_interrupts
from dagster._core.events import AssetMaterializationPlannedData, EngineEventData
from dagster._core.execution.api import ExecuteRunWithPlanIterable, execute_run_iterator
from dagster._core.execution.compute_logs import create_compute_log_file_key
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.plan.execute_plan import dagster_event_sequence_for_step
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_shared.error import SerializableErrorInfo

__all__ = [
    "INDEX_SHARD_NAME",
    "AssetMaterializationPlannedData",
    "ConfigurableClass",
    "ConfigurableClassData",
    "DagsterStorage",
    "EngineEventData",
    "ExecuteRunWithPlanIterable",
    "InMemoryJob",
    "InstanceConcurrencyContext",
    "PlanExecutionContextManager",
    "RegisteredCodeLocationOrigin",
    "RemoteRepositoryOrigin",
    "SerializableErrorInfo",
    "SqliteEventLogStorage",
    "SqliteRunStorage",
    "SqliteScheduleStorage",
    "WorkspaceFileTarget",
    "WorkspaceProcessContext",
    "WorkspaceRequestContext",
    "create_compute_log_file_key",
    "dagster_event_sequence_for_step",
    "execute_run_iterator",
    "raise_execution_interrupts",
]

REVIEWED = "1.13.27"
"""The Dagster version these names were reviewed for."""

_WEB = "the web server's command has no place for a layer around its application, which takes the workspace as this"
_ORIGIN = "the UI lists a run under the job of its origin, and a run that a process creates itself has none"
_STORAGE = (
    "blogdata.services.dagster_storage keeps SQLite's connections open; dagster.yaml can only replace the whole class"
)
_EXECUTOR = (
    "blogdata.orchestration.side_by_side executes steps in threads: Dagster's executors have one step at a time in a "
    "process, and of an executor only its base class is public"
)
REASONS: Mapping[str, str] = {
    "execute_run_iterator": "shows each event as it happens; execute_in_process returns at the end",
    "InMemoryJob": "execute_run_iterator takes the job in this wrapper",
    "AssetMaterializationPlannedData": "Dagster counts a partition as failed that a failed run has planned, and not "
    "published; it plans partitions itself only in runs of assets",
    "RemoteRepositoryOrigin": _ORIGIN,
    "RegisteredCodeLocationOrigin": f"{_ORIGIN}; of a code location only its name counts there",
    "EngineEventData": f"{_EXECUTOR}; the process of the run is in this event",
    "ExecuteRunWithPlanIterable": f"{_EXECUTOR}; sets the resources up, and takes interrupts between the steps",
    "PlanExecutionContextManager": f"{_EXECUTOR}; the resources and the contexts of the steps",
    "InstanceConcurrencyContext": f"{_EXECUTOR}; the slots in pools",
    "dagster_event_sequence_for_step": f"{_EXECUTOR}; executes a step with its retries and failures",
    "create_compute_log_file_key": f"{_EXECUTOR}; names the files of what the process prints",
    "raise_execution_interrupts": f"{_EXECUTOR}; raises an interrupt while it waits",
    "SerializableErrorInfo": "the type of the error of a failed step, which a public event contains",
    "DagsterStorage": "the base class of a storage that dagster.yaml names; documented, but not exported",
    "ConfigurableClass": "likewise: what dagster.yaml names must be one",
    "ConfigurableClassData": "likewise: the entry of dagster.yaml that such a class is given",
    "SqliteEventLogStorage": _STORAGE,
    "SqliteRunStorage": _STORAGE,
    "SqliteScheduleStorage": _STORAGE,
    "WorkspaceProcessContext": _WEB,
    "WorkspaceRequestContext": "of one web server, some requests may change nothing; its command has one right for all",
    "WorkspaceFileTarget": _WEB,
    "INDEX_SHARD_NAME": f"{_STORAGE}; the index has this name beside the runs' files",
}
"""Why each name is needed, and why no public one does."""
