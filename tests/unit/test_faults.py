"""Fault rates are parsed strictly, and each fault breaks lines in its own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.simulator.spec import FaultRates, load_faults


def test_a_faults_file_sets_only_named_rates(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("duplicate = 0.25\nlate = 0 # none\n")
    assert load_faults(tmp_path / "faults") == FaultRates.none(duplicate=0.25)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("duplicates = 0.1", "duplicates: Unexpected"),
        ("duplicate = 1.5", "less than or equal to 1"),
        ("duplicate = nan", "finite"),
        ("duplicate = 0.6\nlate = 0.6", "add up to 1.2"),
        ("duplicate", "cannot be read"),
    ],
)
def test_a_wrong_faults_file_is_refused_with_reason(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "faults").write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        load_faults(tmp_path / "faults")
