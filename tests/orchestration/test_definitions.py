"""All definitions that Dagster's UI and daemon load are valid; a run resolves only its own job."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from blogdata.services.config import Settings
from blogdata.services.postgres_settings import PostgresSettings
from definitions import build

NOWHERE = Path("/nowhere")


@pytest.mark.parametrize("url", ["", "postgresql://nowhere/nothing"])
def test_definitions_load_with_and_without_a_database(url: str) -> None:
    settings = Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE, postgres=PostgresSettings(url=url))
    dg.Definitions.validate_loadable(build(settings))
