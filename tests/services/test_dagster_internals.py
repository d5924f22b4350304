"""Private names of Dagster are imported in one module, and an upgrade that changes them fails a test."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest

from blogdata.services import dagster_internals as internals

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("platform", "assets", "sensors", "quality", "resources", "tools")
PLACE = ROOT / "platform" / "blogdata" / "services" / "dagster_internals.py"
PRIVATE = re.compile(r"\bdagster(?:_\w+)?(?:\.\w+)*\._\w|\bfrom dagster\w* import _|\bdagster_shared\b")

SIGNATURES = {
    "execute_run_iterator": "(job, dagster_run, instance, resume_from_failure=False)",
    "EngineEventData": "(metadata=None, error=None, marker_start=None, marker_end=None)",
    "EngineEventData.in_process": "(pid, step_keys_to_execute=None)",
    "ExecuteRunWithPlanIterable": "(execution_plan, iterator, execution_context_manager)",
    "InstanceConcurrencyContext": "(instance, dagster_run)",
    "PlanExecutionContextManager": "(job, execution_plan, run_config, dagster_run, instance, retry_mode, "
    "scoped_resources_builder_cm=None, raise_on_error=False, output_capture=None, "
    "step_dependency_config=StepDependencyConfig(require_upstream_step_success=True))",
    "create_compute_log_file_key": "()",
    "dagster_event_sequence_for_step": "(step_context, force_local_execution=False)",
    "raise_execution_interrupts": "()",
    "AssetMaterializationPlannedData": "(asset_key, partition=None, partitions_subset=None)",
    "InMemoryJob": "(job_def)",
    "RemoteRepositoryOrigin.get_job_origin": "(self, job_name)",
    "DagsterStorage.register_instance": "(self, instance)",
    "ConfigurableClass.config_type": "()",
    "ConfigurableClass.from_config_value": "(inst_data, config_value)",
    "ConfigurableClassData": "(module_name, class_name, config_yaml)",
    "SerializableErrorInfo": "(message, stack, cls_name, cause=None, context=None)",
    "SqliteEventLogStorage": "(base_dir, inst_data=None)",
    "SqliteEventLogStorage.conn_string_for_shard": "(self, shard_name)",
    "SqliteEventLogStorage.dispose": "(self)",
    "SqliteEventLogStorage.has_table": "(self, table_name)",
    "SqliteEventLogStorage.index_connection": "(self)",
    "SqliteEventLogStorage.path_for_shard": "(self, run_id)",
    "SqliteEventLogStorage.run_connection": "(self, run_id=None)",
    "SqliteEventLogStorage.store_event": "(self, event)",
    "SqliteEventLogStorage.wipe": "(self)",
    "SqliteRunStorage": "(conn_string, inst_data=None)",
    "SqliteRunStorage.connect": "(self)",
    "SqliteRunStorage.dispose": "(self)",
    "SqliteRunStorage.from_local": "(base_dir, inst_data=None)",
    "SqliteScheduleStorage": "(conn_string, inst_data=None)",
    "SqliteScheduleStorage.connect": "(self)",
    "SqliteScheduleStorage.from_local": "(base_dir, inst_data=None)",
    "WorkspaceFileTarget.create_origins": "(self)",
    "WorkspaceProcessContext.create_request_context": "(self, source=None)",
    "WorkspaceProcessContext.reload_code_location": "(self, name)",
    "WorkspaceProcessContext": "(instance, workspace_load_target, version='', read_only=False, "
    "grpc_server_registry=None, code_server_log_level='INFO', server_command=<GrpcServerCommand.API_GRPC: 'api_grpc'>)",
    "WorkspaceRequestContext": "(instance, current_workspace, process_context, version, source, read_only, "
    "read_only_locations=None)",
}
"""Parameters of what is called or overridden; annotations are left out."""

UNDOCUMENTED = {
    "create_run_for_job": {"job_def", "tags", "run_config", "remote_job_origin"},
    "add_run_tags": {"run_id", "new_tags"},
    "all_logs": {"run_id", "of_type"},
    "report_dagster_event": {"dagster_event", "run_id"},
    "report_run_failed": {"dagster_run", "message"},
    "from_config": {"config_dir"},
    "get_daemon_heartbeats": {"self"},
    "get_required_daemon_types": {"self"},
    "optimize_for_webserver": {"statement_timeout", "pool_recycle", "max_overflow"},
}
"""Methods of the public instance that are called and that Dagster does not document, with the parameters used."""


def test_the_installed_dagster_is_the_reviewed_one() -> None:
    assert version("dagster") == internals.REVIEWED, (
        "review the names in blogdata.services.dagster_internals against the new version: is there a public one now, "
        "do these do"
        " what their reasons say? Then record new signatures here and set REVIEWED"
    )


def test_private_names_and_reasons_correspond() -> None:
    imported = re.search(r"^from dagster.*?(?=^__all__)", PLACE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert imported is not None
    for name in internals.__all__:
        assert re.search(rf"\b{name}\b", imported[0]), name
    assert {*internals.REASONS} == {*internals.__all__}


def test_no_other_module_imports_what_is_private() -> None:
    files = [*(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")), ROOT / "definitions.py"]
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files
        if file.suffix in (".py", ".yaml", ".sh") and file != PLACE
        for line in file.read_text(encoding="utf-8").splitlines()
        if PRIVATE.search(line)
    ]
    assert not found, f"use a public name, or import it in blogdata.services.dagster_internals and say why: {found}"


@pytest.mark.parametrize(
    "line",
    [
        "from dagster._core.execution.api import execute_job",
        "import dagster._check as check",
        "from dagster import _check",
        "from dagster_postgres.utils._private import name",
        "from dagster_shared.error import SerializableErrorInfo",
        "  module: dagster._core.run_coordinator",
    ],
)
def test_a_private_import_is_found(line: str) -> None:
    assert PRIVATE.search(line)


@pytest.mark.parametrize("line", ["import dagster as dg", "from dagster_pyspark import LazyPySparkResource"])
def test_a_public_import_is_no_fault(line: str) -> None:
    assert not PRIVATE.search(line)


@pytest.mark.parametrize("name", SIGNATURES)
def test_private_names_keep_their_recorded_signatures(name: str) -> None:
    found: object = internals
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    assert bare(found) == SIGNATURES[name], (
        f"{name} changed: review whoever calls it or is derived from it, see REASONS"
    )


def test_dagster_storage_has_the_expected_abstract_methods() -> None:
    parts = internals.DagsterStorage.__abstractmethods__ | internals.ConfigurableClass.__abstractmethods__
    assert parts == {
        "config_type", "event_log_storage", "from_config_value", "inst_data", "run_storage", "schedule_storage",
    }  # fmt: skip
    assert internals.INDEX_SHARD_NAME == "index"


@pytest.mark.parametrize("name", UNDOCUMENTED)
def test_the_instance_has_the_methods_that_are_called(name: str) -> None:
    assert {*inspect.signature(getattr(dg.DagsterInstance, name)).parameters} >= UNDOCUMENTED[name]


def bare(found: object) -> str:
    """Return the parameters of a callable with their kinds and defaults."""
    assert callable(found)
    signature = inspect.signature(found)
    parameters = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
