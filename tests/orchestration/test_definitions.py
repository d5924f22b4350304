"""What Dagster's UI and daemon load is valid as a whole: a run of one job looks at that job alone."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from definitions import build
from services.config import PostgresSettings, Settings

NOWHERE = Path("/nowhere")


@pytest.mark.parametrize("url", ["", "postgresql://nowhere/nothing"])
def test_everything_loads_together_with_what_is_served_and_without(url: str) -> None:
    settings = Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE, postgres=PostgresSettings(url=url))
    dg.Definitions.validate_loadable(build(settings))
