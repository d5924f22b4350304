"""The pointer of a dataset stored in several tables: changed by one writer at a time, read at one version."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blogdata.table import expiry, members
from blogdata.table.lake import Lake
from blogdata.table.members import NONE_YET
from toy_members import DATASET, NOON, member

LONG = timedelta(days=30)


@pytest.fixture
def lake(lake_root: object) -> Lake:
    return Lake(root=str(lake_root))


def test_a_stale_change_of_members_is_refused(lake: Lake) -> None:
    monday, tuesday = member(lake, "2026-01-05"), member(lake, "2026-01-12")
    assert members.commit(lake, DATASET, NONE_YET, [monday], {}) == 0
    assert members.commit(lake, DATASET, NONE_YET, [tuesday], {}) is None, "another writer was first"
    base = members.seen(lake, DATASET)
    assert members.commit(lake, DATASET, base, [monday, tuesday], {}) == 1
    assert members.commit(lake, DATASET, base, [tuesday], {}) is None
    assert [one.name for one in members.seen(lake, DATASET).visible] == ["2026-01-05", "2026-01-12"]
    assert lake.row_counts(DATASET, "week") == {"2026-01-05": 1, "2026-01-12": 1}
    assert lake.row_counts(DATASET, "week", version=0) == {"2026-01-05": 1}
    (part,) = lake.parts(DATASET, partitions=["2026-01-12"])
    assert part.name.endswith("2026-01-12-a"), "tables that are not requested are not opened"


def test_the_view_has_every_members_columns(lake: Lake) -> None:
    old = member(lake, "2026-01-05", since=1)
    wide = {**old.columns, "page": "STRING"}
    wider = replace(old, name="2026-01-12", columns=wide, visible_from=NOON - timedelta(hours=1))
    for chosen in ([old, wider], [wider, old], [replace(wider, visible_from=NOON), old]):
        assert members.columns_of(chosen) == wide
    assert list(members.columns_of([old, wider])) == ["week", "click", "page"]
    assert members.columns_of([old]) == old.columns
    # Two writers have each added a column concurrently.
    other = replace(old, name="2026-01-19", columns={**old.columns, "device": "STRING"})
    assert set(members.columns_of([old, wider, other])) == {"week", "click", "page", "device"}


def test_an_interrupted_removal_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    old, visible = member(lake, "2026-01-05", until=NOON), member(lake, "2026-01-12")
    members.commit(lake, DATASET, NONE_YET, [old, visible], {})
    with monkeypatch.context() as patch:
        patch.setattr("blogdata.table.expiry.shutil.rmtree", lambda folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            expiry.remove(lake, DATASET, keep=LONG, now=NOON + 2 * LONG)
    assert [part.removed_at for part in members.seen(lake, DATASET).all] == [NOON + 2 * LONG, None]
    assert list(expiry.remove(lake, DATASET, keep=LONG, now=NOON + 3 * LONG)) == ["2026-01-05-a"]
