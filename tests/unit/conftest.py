"""A lake without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.table.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))
