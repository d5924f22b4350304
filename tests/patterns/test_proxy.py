from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException

from blogdata.contract.publication import WHOLE_TABLE, Account, Commit
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency import proxy
from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.table import expiry, members
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from toy import WHOLE, copies_of, problems, target

THINGS = replace(WHOLE, dataset="bronze.things")
YEARS = timedelta(days=THINGS.retention_days)


def load(
    spark: Any, lake: Lake, rows: int, run: str, *, name: str = "v2026-01-05", inputs: Mapping[str, int] | None = None
) -> Commit:
    frame = spark.range(rows).selectExpr("'h' AS hour", "id AS click", "1L AS stands_for", "'/' AS page")
    provenance = Provenance(inputs=inputs or {}, accounts={WHOLE_TABLE: Account(rows_in=rows)})
    return proxy.load(frame, target(Path(lake.root), run, contract=THINGS), provenance, name=name)


lake = copies_of(lambda spark, root: load(spark, Lake(root=str(root)), 10, "r1"), lambda _, root: Lake(root=str(root)))


def count(lake: Lake, version: int | None = None) -> int:
    return lake.row_counts(THINGS.dataset, None, version)[WHOLE_TABLE]


def copies(lake: Lake) -> list[str]:
    folder = lake.folder(members.table_of(THINGS.dataset, ""))
    assert folder is not None
    return sorted(file.name for file in folder.iterdir())


def test_the_name_shows_the_newest_copy_with_history(spark: Any, lake: Lake) -> None:
    monday = lake.version(THINGS.dataset)
    tuesday = load(spark, lake, 12, "r2", name="v2026-01-06")
    assert (count(lake), count(lake, monday)) == (12, 10)
    assert lake.read(spark, THINGS.dataset, monday).count() == 10
    first, second = proxy.history(lake, THINGS.dataset)
    shown = [(copy.rows, copy.run_id, copy.since_version) for copy in (first, second)]
    assert shown == [(10, "r1", monday), (12, "r2", tuesday.version)]
    assert first.visible_until == second.visible_from, "without a gap"
    assert second.visible_until is None
    assert [entry.rows_out for entry in EventLog(lake).history(THINGS.dataset)] == [10, 12]
    assert problems(lake, THINGS) == []

    # Retention removes and reports expired copies, but never the visible one.
    years = datetime.now(timezone.utc) + YEARS
    assert expiry.remove(lake, THINGS.dataset, keep=YEARS, now=years - timedelta(days=1)) == {}
    assert list(expiry.remove(lake, THINGS.dataset, keep=YEARS, now=years + timedelta(days=400))) == [first.location]
    assert copies(lake) == [second.location]
    assert count(lake) == 12
    with pytest.raises(PlatformError, match=rf"version {monday}"):
        lake.read(spark, THINGS.dataset, monday)


def test_a_crashed_load_is_completed_with_its_copy(spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(rows: int, run: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(members, "commit", lambda *args, **more: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                load(spark, lake, rows, run, inputs={"bronze.x": 1})

    crash(12, "r2")
    assert (count(lake), len(copies(lake))) == (10, 2), "a copy without a pointer is invisible"
    load(spark, lake, 12, "r2", inputs={"bronze.x": 1})
    assert (count(lake), len(copies(lake))) == (12, 2), "the existing copy is shown"
    assert load(spark, lake, 12, "r2", inputs={"bronze.x": 1}).repeated
    crash(13, "r3")
    load(spark, lake, 14, "r3", inputs={"bronze.x": 2})
    assert count(lake) == 14, "a retry with a newer input does not publish the first try's rows"


def test_a_copy_is_never_written_again(spark: Any, lake: Lake) -> None:
    (copy,) = proxy.history(lake, THINGS.dataset)
    table = members.table_of(THINGS.dataset, copy.location)
    frame = lake.read(spark, THINGS.dataset)
    as_member = target(Path(lake.root), "r2", contract=replace(THINGS, dataset=table))
    with pytest.raises(PlatformError, match="never written again"):
        overwrite_table(frame, as_member, Provenance())
    directly = target(Path(lake.root), "r2", contract=THINGS)
    with pytest.raises(PlatformError, match=r"patterns\.idempotency\.proxy"):
        overwrite_table(frame, directly, Provenance())
    for sql in ("DELETE FROM {0}", "UPDATE {0} SET page = 'x'", "INSERT OVERWRITE {0} SELECT * FROM {0} LIMIT 1"):
        with pytest.raises(PySparkException, match="append"):
            spark.sql(sql.format(f"delta.`{lake.path(table)}`"))
    write_deltalake(lake.path(table), frame.limit(1).toArrow(), mode="append")
    assert lake.read(spark, THINGS.dataset).count() == 10, "rows appended outside the platform are never read"
