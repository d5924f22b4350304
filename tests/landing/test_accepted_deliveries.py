"""A delivery of users that a person has let through is not asked about again when changes of its day land."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from assets.bronze import full_deliveries as bronze
from assets.silver import users as silver
from blogdata.contract.publication import Entry
from blogdata.landing.full_loader import FullLoadRefused
from blogdata.landing.sizes import LandedSize

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
        own = Entry(
            dataset="silver.users",
            partition="",
            version=1,
            rows_in=0,
            rows_out=0,
            reasons={},
            inputs={"bronze.users": read},
        )
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
