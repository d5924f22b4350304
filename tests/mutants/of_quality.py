"""Defects of audits, kept rows, lifted guards and observers."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine

AUDITED = "tests/quality/test_audit_write_audit_publish.py"
DRIFT = "tests/quality/test_drift.py"
LOST = "tests/attacks/test_lost_lineage.py"
ONLINE = "tests/quality/test_online_observer.py"

QUALITY = (
    in_code(
        "an audit that warns is not measured",
        "platform/blogdata/publish/audit.py",
        "audit.failed is Failed.WARNS or audit.name in lifted",
        "audit.name in lifted",
        f"{AUDITED}::test_an_audit_that_warns_publishes_and_says_so",
    ),
    in_code(
        "refused rows are kept with those of sound partitions",
        "platform/blogdata/publish/refused.py",
        "rows.where(rows[column].isin(partitions))",
        "rows",
        f"{AUDITED}::test_refused_rows_are_kept_until_they_expire",
    ),
    in_code(
        "refused rows are never removed",
        "platform/blogdata/publish/refused.py",
        "if batch.kept_until <= now",
        "if batch.kept_until < batch.refused_at",
        f"{AUDITED}::test_refused_rows_are_kept_until_they_expire",
    ),
    in_code(
        "every look profiles everything",
        "platform/blogdata/patterns/quality/offline_observer.py",
        "published[partition].version > seen.get(period, -1)",
        "published[partition].version >= 0",
        "tests/quality/test_offline_observer.py",
    ),
    in_code(
        "a look at nothing new hides the drift that stands",
        "quality/profiles.py",
        "standing_drifts(self.seen)",
        "standing_drifts(self.found)",
        "tests/quality/test_standing_drift.py::test_a_drift_stands_until_a_newer_period_without_one_is_looked_at",
    ),
    in_code(
        "drift has a fixed limit",
        "platform/blogdata/patterns/quality/drift.py",
        "if here > limit:",
        "if here > least:",
        f"{DRIFT}::test_quiet_days_of_any_size_raise_nothing",
    ),
    in_code(
        "a null refers to something",
        "platform/blogdata/patterns/quality/constraints_enforcer.py",
        "facts.dropna(subset=list(on)).join(",
        "facts.join(",
        "tests/quality/test_constraints_enforcer.py::test_orphans_are_found_and_null_references_ignored",
    ),
    in_code(
        "a stream is judged by single batches",
        "platform/blogdata/patterns/quality/online_observer.py",
        "if rows >= LEAST_ROWS:",
        "if rows:",
        f"{ONLINE}::test_small_batches_are_judged_together",
    ),
    in_engine(
        "kept rows lose their lineage",
        "ColumnLineage.java",
        "KEPT.get(((LogicalRDD) plan).rdd())",
        "null",
        f"{LOST}::test_kept_rows_know_what_they_were_computed_from",
    ),
    in_engine(
        "a column that only filters is not read",
        "ColumnLineage.java",
        "used.forEach(id -> read.addAll(trace(id)));",
        "",
        f"{LOST}::test_a_column_is_read_whatever_it_is_used_for",
    ),
    in_code(
        "lost lineage reads nothing",
        "platform/blogdata/patterns/observability/column_readers.py",
        "if lost or not recorded:",
        "if not recorded:",
        f"{LOST}::test_the_newest_code_decides_what_a_dataset_reads",
    ),
)
