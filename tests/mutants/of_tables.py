"""Defects of datasets stored as several tables behind one name."""

from __future__ import annotations

from mutants.mutant import in_code

LAWS = "tests/laws/test_laws.py"
DAMAGE = "tests/evidence/test_repair.py"
MEMBERS = "tests/lake/test_members.py"
PROXY = "tests/idempotency/test_proxy.py"
AUDITED_MEMBERS = "platform/blogdata/patterns/idempotency/audited_members.py"
CLEANER = "platform/blogdata/patterns/idempotency/fast_metadata_cleaner.py"

COMPATIBILITY = "tests/quality/test_schema_compatibility_enforcer.py"
MIGRATOR = "tests/quality/test_schema_migrator.py"

MATERIALIZER = "platform/blogdata/patterns/storage/dataset_materializer.py"
MATERIALIZED = "tests/storage/test_dataset_materializer.py"
SHARES = "tests/storage/test_manifest.py"
SPLIT = "tests/storage/test_vertical_partitioner.py"

TABLES = (
    in_code(
        "an event goes with its line when that expires",
        "platform/blogdata/patterns/storage/vertical_partitioner.py",
        'list(key), "left")',
        'list(key), "inner")',
        f"{SPLIT}::test_the_view_shows_each_row_once_whatever_the_lines_are",
    ),
    in_code(
        "consumers see a personal column while it is retired",
        "platform/blogdata/publish/migrations.py",
        """        return {"subject": migration.subject}""",
        """        return {}""",
        f"{SPLIT}::test_a_table_made_before_loses_the_column_after_its_grace_only",
    ),
    in_code(
        "a refresh takes a change feed that lacks versions for one without changes",
        MATERIALIZER,
        "            return None\n        raise",
        "            return frozenset()\n        raise",
        f"{MATERIALIZED}::test_a_feed_that_does_not_tell_everything_is_not_followed",
    ),
    in_code(
        "a refresh overlooks an hour that has lost its rows",
        MATERIALIZER,
        ".otherwise(-1)",
        ".otherwise(0)",
        f"{MATERIALIZED}::test_only_other_rows_that_the_view_reads_are_changes",
    ),
    in_code(
        "the removal of old files does not know who has still to read what changed",
        "platform/blogdata/evidence/held_versions.py",
        "        **_unread_changes(lake, events, contract, now or datetime.now(timezone.utc)),\n",
        "",
        "tests/evidence/test_held_versions.py"
        "::test_what_the_reader_of_a_change_feed_has_not_read_is_held_for_thirty_days",
    ),
    in_code(
        "a table is removed while a manifest names its files",
        "platform/blogdata/lake/retired.py",
        "moment - keep) - _shared(lake, dataset)",
        "moment - keep)",
        f"{SHARES}::test_a_dataset_of_several_tables_is_shared_whole",
    ),
    in_code(
        "a manifest names the weeks that another table has replaced",
        "platform/blogdata/patterns/storage/manifest.py",
        """if part.partitions is None or action[f"partition.{column}"] in part.partitions:""",
        "if True:",
        f"{SHARES}::test_a_dataset_of_several_tables_is_shared_whole",
    ),
    in_code(
        "readers find a manifest before it is whole",
        "platform/blogdata/durable/switched_folder.py",
        """    staged = home / f".{uuid4()}"
    write(staged)""",
        """    switch(home, name)
    staged = home / f".{uuid4()}"
    write(staged)""",
        f"{SHARES}::test_a_share_that_dies_leaves_a_whole_manifest",
    ),
    in_code(
        "a column may go from one release to the next",
        "platform/blogdata/publish/incompatibilities.py",
        "            if mode.forward:\n                yield _removed(path)\n",
        "",
        f"{COMPATIBILITY}::test_a_breaking_release_is_refused",
        f"{COMPATIBILITY}::test_every_incompatibility_is_listed_at_once",
    ),
    in_code(
        "only the last release counts",
        "platform/blogdata/publish/incompatibilities.py",
        "versions if mode.transitive else versions[-1:]",
        "versions[-1:]",
        f"{COMPATIBILITY}::test_a_default_makes_a_required_column_compatible",
    ),
    in_code(
        "a column is removed under its readers",
        "platform/blogdata/patterns/quality/schema_migrator.py",
        "    if found:\n        raise StillRead(",
        "    if False:\n        raise StillRead(",
        f"{MIGRATOR}::test_a_column_is_renamed_through_its_phases",
    ),
    in_code(
        "a column is removed before its successor has its values",
        "platform/blogdata/patterns/quality/schema_migrator.py",
        "    if migration.successor and table",
        "    if False and table",
        f"{MIGRATOR}::test_a_column_without_its_successor_is_not_removed",
    ),
    in_code(
        "a pointer is changed whatever came in between",
        "platform/blogdata/lake/members.py",
        "table = DeltaTable(path, version=base.version, storage_options=options)",
        "table = DeltaTable(path, storage_options=options)",
        f"{MEMBERS}::test_a_stale_change_of_members_is_refused",
    ),
    in_code(
        "of two who replace a partition the last one wins",
        AUDITED_MEMBERS,
        "if _places(base, partitions) != _places(planned_from, partitions):",
        "if False:",
        f"{LAWS}::test_of_two_writers_at_once_one_publishes[replace_periods-audited]",
    ),
    in_code(
        "a retry shows what was computed from other inputs",
        AUDITED_MEMBERS,
        "json.dumps([commit_id, asdict(provenance)], sort_keys=True, default=str)",
        "json.dumps([commit_id], sort_keys=True, default=str)",
        f"{PROXY}::test_a_crashed_load_is_completed_with_its_copy",
    ),
    in_code(
        "a copy can be written again",
        AUDITED_MEMBERS,
        "    _close(target.lake, table)\n",
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    in_code(
        "what is appended to a copy is read",
        "platform/blogdata/lake/lake.py",
        '.option("versionAsOf", member.version)',
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    in_code(
        "retention removes what is visible",
        "platform/blogdata/lake/retired.py",
        "row.visible_until is None or row.visible_until >= before",
        "row.visible_until is not None and row.visible_until >= before",
        f"{MEMBERS}::test_only_long_superseded_members_are_removed",
    ),
    in_code(
        "rows of another week vanish",
        CLEANER,
        "frame.where(~others) if keys[1:] else frame]",
        "frame.where(F.col(column) == keys[-1])]",
        "tests/idempotency/test_fast_metadata_cleaner.py::test_a_refused_publication_shows_no_week",
    ),
    in_code(
        "a frozen week is replaced",
        CLEANER,
        "    if not thaw:\n",
        "    if False:\n",
        "tests/idempotency/test_fast_metadata_cleaner.py::test_a_final_year_freezes_into_one_table",
    ),
    in_code(
        "a repair takes back nothing of days that build on one another",
        "platform/blogdata/evidence/repair.py",
        "    if contract.executed is not None:\n",
        "    if False:\n",
        f"{DAMAGE}::test_a_lost_execution_file_costs_all_executions",
    ),
    in_code(
        "a flipped byte of a file is not looked for",
        "platform/blogdata/lake/checksums.py",
        "    for found in _sums(file, length):\n",
        "    for found in kept:\n",
        "tests/attacks/test_corruption.py::test_any_flipped_byte_of_a_table_is_named",
    ),
    in_code(
        "a rebuilt event log lacks what its files alone have",
        "platform/blogdata/evidence/own_tables.py",
        "    for file, rows in files.items():\n        dataset",
        "    for file, rows in dict[Path, pa.Table]().items():\n        dataset",
        "tests/attacks/test_corruption.py::test_a_damaged_event_log_is_made_again",
    ),
    in_code(
        "a restoration whose commit is lost counts",
        "platform/blogdata/evidence/events.py",
        "[Event(kind=LOST, dataset=dataset, table_version=lost), *back]",
        "back",
        f"{DAMAGE}::test_a_lost_execution_or_restoration_never_happened",
    ),
    in_code(
        "a member's log is not looked at",
        "platform/blogdata/evidence/damage.py",
        "    if found := of_the_log(log, member.version):\n",
        "    if found := list[Damage]():\n",
        f"{DAMAGE}::test_a_damaged_member_costs_only_its_weeks",
    ),
    in_code(
        "of a frozen year a lost week is refused",
        CLEANER,
        "_refuse_frozen(seen, tuple(published), target.contract)",
        "_refuse_frozen(seen, keys, target.contract)",
        "tests/laws/test_lost_files.py::test_whole_frozen_weeks_stay_frozen_beside_a_loss",
    ),
    in_code(
        "a constraint that was dropped stays dropped",
        "platform/blogdata/publish/tables.py",
        "if known.get(CONTRACT) == contract.fingerprint and not absent and",
        "if known.get(CONTRACT) == contract.fingerprint and",
        "tests/quality/test_constraints_enforcer.py::test_a_dropped_constraint_is_restored_before_writing",
    ),
    in_code(
        "consumers see what is personal",
        "platform/blogdata/publish/privacy.py",
        "if not column.personal and",
        "if",
        "tests/data_value/test_metadata_decorator.py::test_a_personal_key_column_is_hidden",
    ),
    in_code(
        "buckets are trusted",
        "platform/blogdata/patterns/storage/bucket.py",
        "if len(stated) != 1 or None in stated:",
        "if None in stated and len(stated) > 1:",
        "tests/storage/test_bucket.py::test_the_buckets_are_those_of_the_log",
    ),
    in_code(
        "a year states buckets although its oldest weeks have none",
        CLEANER,
        "buckets if bucketed else None",
        "buckets",
        "tests/orchestration/test_kept_tables.py::test_final_years_are_frozen_and_replaced_tables_removed",
    ),
    in_code(
        "a frozen year is read before it was sorted",
        AUDITED_MEMBERS,
        "version=one.version,",
        "version=one.commit.version,",
        "tests/idempotency/test_fast_metadata_cleaner.py::test_a_final_year_freezes_into_one_table",
    ),
    in_code(
        "large partitions are left as they were written",
        "platform/blogdata/patterns/storage/sorter.py",
        "if found >= 2 * order.file_bytes)",
        "if found < order.file_bytes)",
        "tests/storage/test_sorter.py::test_sorted_rows_skip_files_for_either_column",
    ),
)
