"""What a step makes of landed files: an accepted delivery is asked about once, what lands meanwhile is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assets.bronze import full_deliveries as bronze
from assets.silver import users as silver
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Entry
from blogdata.landing.full_loader import FullLoadRefused
from blogdata.landing.sizes import LandedSize
from blogdata.runs import landed_inputs

FIFTH, SIXTH = "2026-01-05", "2026-01-06"
DELIVERY, CHANGES = "users/date=2026-01-06/users.json", "users/date=2026-01-06/users_table-1.jsonl"


def published(day: str, version: int, *, delivered: int, dead: int = 0, changes: int = 0) -> Entry:
    rows = delivered + changes
    return Entry(
        dataset="bronze.users",
        partition=day,
        version=version,
        rows_in=rows,
        rows_out=rows,
        reasons={},
        measures={"dead": dead, "changes": changes, "dead_changes": 0},
        landed="older files",
    )


def require_believable(known: Entry | None, files: Mapping[str, int]) -> None:
    entries = {FIFTH: published(FIFTH, 1, delivered=4), **({SIXTH: known} if known else {})}
    step: Any = SimpleNamespace(accepted=(), events=SimpleNamespace(publications=lambda _: entries))
    landed: Any = SimpleNamespace(
        partitions={SIXTH: SimpleNamespace(key=SIXTH, fingerprint="newer files")},
        measured={SIXTH: {name: LandedSize(lines=lines, bytes=lines) for name, lines in files.items()}},
    )
    bronze._require_believable(step, landed)


def test_full_loader_guards_compare_an_accepted_delivery_once() -> None:
    with pytest.raises(FullLoadRefused, match="1 rows, less than 50% of the last load's 4"):
        require_believable(None, {DELIVERY: 1, CHANGES: 3})
    accepted = published(SIXTH, 2, delivered=1, changes=3)
    require_believable(accepted, {DELIVERY: 1, CHANGES: 5})
    # Another one of the same day is compared again.
    accepted = published(SIXTH, 2, delivered=2, changes=3)
    with pytest.raises(FullLoadRefused, match="1 rows"):
        require_believable(accepted, {DELIVERY: 1, CHANGES: 5})


def test_full_loader_guards_miss_a_delivery_that_changes_have_replaced() -> None:
    require_believable(published(SIXTH, 2, delivered=0, changes=3), {CHANGES: 5})
    with pytest.raises(FullLoadRefused, match="0 rows"):
        require_believable(published(SIXTH, 2, delivered=4), {CHANGES: 5})


def test_an_accepted_delivery_with_many_dead_letters_is_asked_about_once() -> None:
    first, accepted = published(FIFTH, 1, delivered=4), published(SIXTH, 2, delivered=4, dead=3)
    newer = published(SIXTH, 3, delivered=4, dead=3, changes=2)

    def require_usable(read: int, delivery: Entry) -> None:
        history = [entry for entry in (first, accepted, newer) if entry.version <= delivery.version]
        entries = {"bronze.users": {FIFTH: first, SIXTH: delivery}}
        own = replace(published("", 1, delivered=0), dataset="silver.users", inputs={"bronze.users": read})
        step: Any = SimpleNamespace(
            accepted=(),
            contract=SimpleNamespace(dataset="silver.users"),
            pin=lambda _: delivery.version,
            events=SimpleNamespace(
                publications=lambda dataset, *_: entries.get(dataset, {"": own}), history=lambda _: history
            ),
        )
        silver._require_usable_users(step)

    with pytest.raises(FullLoadRefused, match="3 of 4 rows are dead letters; 1 can be used, there were 4"):
        require_usable(1, accepted)
    require_usable(2, newer)
    with pytest.raises(FullLoadRefused, match="3 of 4"):
        require_usable(1, newer)


def test_what_lands_while_lines_are_erased_is_looked_at_before_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = "2026-04-01T10"
    file, looks = {"of a person": True, "state": 1}, []

    def scan(*_: object, **__: object) -> list[Any]:
        files = [SimpleNamespace(name="visits.json", state=file["state"])]
        return [SimpleNamespace(key=hour, ready=True, links=(), folder=Path("hour"), files=files)]

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
    assert (file["of a person"], looks, found.files[0].state) == (False, [1, 2, 3], 3)
