"""Everything the platform imports from Dagster's private modules, with the reason for each name.

Dagster may change these without notice, so they are imported here only: review them when you upgrade it. Importing this
module imports Dagster: commands that answer at once must not.
"""

from __future__ import annotations

# execute_run_iterator shows each event as it happens (execute_in_process returns at the end), of a job in this wrapper.
from dagster._core.definitions.job_base import InMemoryJob

# An output with this metadata makes no event: a step logs its own, one for each partition that it has published, while
# Dagster would log one for each partition that was asked for.
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION as WITHOUT_EVENT
from dagster._core.execution.api import execute_run_iterator

# blogdata.operate.dagster_storage keeps its connections open.
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

# The web server's command has no place for a layer around its application, which takes the workspace as this.
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget

# What a storage that dagster.yaml names is given.
from dagster._serdes import ConfigurableClassData

# The error of a failed step, which a public event contains.
from dagster_shared.error import SerializableErrorInfo

__all__ = [
    "WITHOUT_EVENT",
    "ConfigurableClassData",
    "InMemoryJob",
    "SerializableErrorInfo",
    "SqliteEventLogStorage",
    "WorkspaceFileTarget",
    "WorkspaceProcessContext",
    "execute_run_iterator",
]
