"""An entrance for events from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.patterns.ingestion.external_trigger import Trigger
from toy_trigger import trigger_in


@pytest.fixture
def trigger(tmp_path: Path) -> Trigger:
    return trigger_in(tmp_path)
