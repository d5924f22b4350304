"""The one way to write: its commits, its refusals, and what it leaves behind.

Pattern: Audit-Write-Audit-Publish.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from toy import HOURS, WHOLE, accounts, clicks, target

pytestmark = pytest.mark.matrix(4)


def test_a_commit_records_its_rows_reasons_and_inputs(spark: Any, lake_root: Path) -> None:
    commit = overwrite_partitions(
        clicks(spark), target(lake_root), HOURS, Provenance(accounts=accounts(), inputs={"bronze.x": 7})
    )
    entry = commit.entries[HOURS[0]]
    assert (entry.rows_in, entry.rows_out) == (accounts()[HOURS[0]].rows_in, 50)
    assert entry.reasons == {"duplicates": entry.rows_in - 50}
    assert entry.missing == 0
    assert entry.measures == {"pages": 5}
    assert entry.breakdowns["pages"] == {(f"/page{n}",): 10 for n in range(5)}
    assert entry.inputs == {"bronze.x": 7}
    assert commit.metadata(HOURS[0])["dagster/partition_row_count"] == 50


def test_a_constraint_that_others_have_added_is_audited(spark: Any, lake_root: Path) -> None:
    overwrite_table(clicks(spark), target(lake_root, "one", contract=WHOLE), Provenance())
    path = Lake(root=str(lake_root)).path(WHOLE.dataset)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT of_others CHECK (page <> '/page9')")
    strange = clicks(spark).withColumn("page", F.expr("if(click = 5, '/page9', page)"))
    with pytest.raises(AuditFailed) as others:
        overwrite_table(strange, target(lake_root, "two", contract=WHOLE), Provenance())
    assert [(item.rule, item.found) for item in others.value.violations] == [("of_others", 1)]
