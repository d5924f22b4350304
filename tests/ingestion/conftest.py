"""An entrance for events from outside, and a write that a test steps through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.patterns.ingestion.external_trigger import Trigger
from laws.stepping import Probe
from toy_trigger import trigger_in


@pytest.fixture
def trigger(tmp_path: Path) -> Trigger:
    return trigger_in(tmp_path)


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    """A probe that holds or ends a write; remaining held writes continue at its end."""
    made = Probe(tmp_path / "probe")
    yield made
    made.release()
