"""What Dagster's pages show of a deployment: its GraphQL schema answers queries in this process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_graphql.test.utils import execute_dagster_graphql

from blogdata.cli.ui_command import PLATFORM
from blogdata.services import dagster_home
from blogdata.services.config import Settings

REPOSITORY = {"repositoryLocationName": PLATFORM, "repositoryName": "__repository__"}
"""What pages call the platform's definitions by."""


class Pages:
    """Answers queries about a deployment."""

    def __init__(self, process: WorkspaceProcessContext) -> None:
        self._process = process

    def ask(self, query: str, **variables: Any) -> Any:
        """Run the query of a page."""
        answer = execute_dagster_graphql(self._process.create_request_context(), query, variables)
        assert not answer.errors, answer.errors
        return answer.data


@contextmanager
def opened(settings: Settings) -> Iterator[Pages]:
    """Open the pages of a deployment."""
    target = LoadableTargetOrigin(module_name="definitions")
    location = InProcessCodeLocationOrigin(target, location_name=PLATFORM)
    with (
        pytest.MonkeyPatch.context() as patch,
        dagster_home.open_instance(settings) as instance,
        warnings.catch_warnings(),
    ):
        # Dagster's description of its own schedules uses a property that it has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        patch.setenv("BLOGDATA_HOME", str(settings.home))
        with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(location)) as process:
            yield Pages(process)
