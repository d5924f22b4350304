"""Rows that nothing computes again are taken out of a table; those of everybody else, and the account, stay right."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import toy
from blogdata.contract.schema import Column
from blogdata.landing.landed_persons import Identifiers
from blogdata.ledger.events import EventLog
from blogdata.operate.config import LogSettings
from blogdata.privacy.erased_rows import Rows, TakingOut
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import Overwrite, Provenance

USER, OTHERS = "user-zq4711canary", ("user-zq4711canar", "USER-zq4711canary", "user-zq4711canary ", "o'neil\\")
"""Who is forgotten, and whose ids are nearly the same."""
CONTRACT = replace(toy.CONTRACT, columns=(*toy.CONTRACT.columns, Column(name="user_id", type="STRING", description="")))
NEWER = replace(CONTRACT, columns=(*CONTRACT.columns, Column(name="since", type="STRING", description="New")))
PERSONS = Identifiers(user_ids=frozenset({USER}))
EMPTIED, LEFT = toy.HOURS
"""An hour with rows of the person only, and one with rows of others and of nobody, too."""


@pytest.fixture
def rows(spark: Any, tmp_path: Path) -> Rows:
    """A lake with two published hours."""
    root = tmp_path / "lake"
    root.mkdir()
    several = F.array(*map(F.lit, (USER, None, *OTHERS)))
    user = F.when(F.col("hour") == EMPTIED, F.lit(USER)).otherwise(several[F.floor(F.col("click") / 2) % 6])
    frame = toy.clicks(spark).withColumn("user_id", user)
    change = Overwrite()
    provenance = Provenance(accounts=toy.accounts())
    publish(frame, toy.target(root, contract=CONTRACT), change=change, partitions=toy.HOURS, provenance=provenance)
    lake = Lake(root=str(root))
    return Rows(events=EventLog(lake), landing=root / "landing", persons=PERSONS, logs=LogSettings())


def test_rows_of_the_person_go_and_the_account_adds_up(spark: Any, rows: Rows) -> None:
    """Also of a table that is older than a column of its contract."""
    root = Path(rows.lake.root)
    before, entries, found = toy.resting(root), rows.events.publications(CONTRACT.dataset), rows.of(NEWER)
    assert found is not None
    taking = TakingOut(rows=rows, run=toy.target(root, run="forget").run, spark=lambda: nullcontext(spark))
    assert taking.of_dataset(NEWER) == []
    others = [row for row in before if row[-1] != USER]
    assert toy.resting(root) == [(*row, None) for row in others]
    assert (len(others), {row[-1] for row in others}) == (len(before) - found.num_rows, {None, *OTHERS})
    after = rows.events.publications(CONTRACT.dataset)
    assert {key: (entry.rows_in, entry.missing) for key, entry in after.items()} == {
        key: (entry.rows_in, 0) for key, entry in entries.items()
    }
    stood_for = {hour: sum(row[2] for row in before if row[0] == hour and row[-1] == USER) for hour in toy.HOURS}
    assert {key: entry.reasons["erased"] for key, entry in after.items()} == stood_for
    assert (after[EMPTIED].rows_out, after[LEFT].rows_out > 0) == (0, True)
    assert rows.of(CONTRACT) is None
    log = Path(rows.lake.path(CONTRACT.dataset)) / "_delta_log"
    said = max(log.glob("*.json")).read_text()
    assert (USER in said, all(hour in said for hour in toy.HOURS)) == (False, True), "no commit has the value"
