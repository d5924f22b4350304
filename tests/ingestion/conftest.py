"""A write that a test steps through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from laws.stepping import Probe


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    """A probe that holds or ends a write; remaining held writes continue at its end."""
    made = Probe(tmp_path / "probe")
    yield made
    made.release()
