"""Lines of forgotten persons that land while others are being erased."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blogdata.contract.partitions import Grain
from blogdata.runs import landed_inputs


def test_what_lands_while_lines_are_erased_is_looked_at_before_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = "2026-04-01T10"
    file = {"of a person": True, "state": 1}

    def scan(*_: object, **__: object) -> list[Any]:
        files = [SimpleNamespace(name="visits.json", state=file["state"])]
        return [SimpleNamespace(key=hour, ready=True, links=(), folder=Path("hour"), files=files)]

    looks = []

    def erase_known(_: object, __: object, files: list[Path]) -> dict[Path, int]:
        looks.append(file["state"])
        if not file["of a person"]:
            return {}
        # While the first line is erased, the producer appends another one.
        file.update({"state": len(looks) + 1, "of a person": len(looks) == 1})
        return dict.fromkeys(files, 1)

    monkeypatch.setattr(landed_inputs, "erase_known", erase_known)
    step: Any = SimpleNamespace(
        landing=Path(),
        landing_zone=SimpleNamespace(scan=scan),
        contract=SimpleNamespace(columns=[SimpleNamespace(subject="user")]),
        deployment=SimpleNamespace(settings=lambda: None),
    )
    found: Any
    (found,) = landed_inputs._scanned(step, "visits", Grain.HOUR, [hour])
    assert not file["of a person"]
    assert looks == [1, 2, 3]
    assert found.files[0].state == 3
