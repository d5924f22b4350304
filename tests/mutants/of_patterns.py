"""Changes to error management, and to what builds on the one way to write."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine, in_error_management

LAWS = "tests/laws/test_laws.py"
PLANNER = "tests/orchestration/test_replay_planner.py"
EXECUTIONS = "tests/idempotency/test_stateful_merger.py"
KEYS = "tests/idempotency/test_keyed_idempotency.py"
MERGER = "platform/patterns/idempotency/stateful_merger.py"
COMPANIONS = "platform/patterns/core/companions.py"
SINK = "platform/patterns/idempotency/transactional_sink.py"
TOGETHER = "tests/idempotency/test_transactional_writer.py"
SERVED = "tests/idempotency/test_transactional_sink.py"
MEMBERS = "tests/core/test_members.py"
PROXY = "tests/idempotency/test_proxy.py"
AUDITED_MEMBERS = "platform/patterns/idempotency/audited_members.py"
USERS = "tests/transforms/test_users.py"
CLEANER = "platform/patterns/idempotency/fast_metadata_cleaner.py"

PATTERNS = (
    # Error management.
    in_error_management(
        "the last of several rows wins",
        "windowed_deduplicator",
        "in_order = together.orderBy(*order)",
        "in_order = together.orderBy(*[F.desc(name) for name in order])",
    ),
    in_error_management(
        "a watermark goes back",
        "late_data_detector",
        "watermark=_later(self.watermark, candidate)",
        "watermark=candidate",
    ),
    in_error_management(
        "a row at the watermark is late",
        "late_data_detector",
        "& (time < mark)",
        "& (time <= mark)",
    ),
    in_error_management(
        "a wild time in the future is believed",
        "late_data_detector",
        "for one in by_key[key] if one not in ignored",
        "for one in by_key[key]",
    ),
    in_error_management(
        "a batch has the files of the one before it",
        "checkpointer",
        "if after < at <= ends[batch]",
        "if after <= at <= ends[batch]",
    ),
    in_error_management(
        "a stream goes on with the checkpoint of another",
        "checkpointer",
        "    if changed:",
        "    if False:",
    ),
    in_code(
        "a checkpoint's files are not held against their sums",
        "platform/patterns/error_management/checkpoint_files.py",
        "if sums.exists() and not _sums_up(content, sums.read_bytes())",
        "if False",
        "tests/error_management/test_checkpointer.py",
    ),
    in_error_management(
        "what comes again replaces what was published",
        "windowed_deduplicator",
        'orderBy(F.desc("_known"), *order)',
        'orderBy(F.asc("_known"), *order)',
    ),
    in_error_management(
        "a stream is judged by all its rows, not by the newest",
        "dead_letter",
        "            if rows >= self.over_rows:",
        "            if rows >= 2 * self.over_rows:",
    ),
    in_error_management(
        "only the first reason of a dead letter is kept",
        "dead_letter",
        "named = F.array(*[F.when(rule.condition, F.lit(rule.name)) for rule in rules])",
        "named = F.array(F.coalesce(*[F.when(rule.condition, F.lit(rule.name)) for rule in rules]))",
    ),
    in_error_management(
        "an unknown condition is no reason",
        "dead_letter",
        "condition=source.isNotNull() & result.isNull()",
        "condition=result.isNull()",
    ),
    in_error_management(
        "a replay has another name each time",
        "dead_letter_replay",
        'f"{position[0]}:{position[1]}".encode()',
        "f\"{position[0]}:{position[1]}:{__import__('time').time_ns()}\".encode()",
    ),
    in_error_management(
        "a row is counted by the last filter that removes it",
        "filter_interceptor",
        "for one in filters[1:]:\n        chain = chain.when(one.removes, F.lit(one.name))",
        "for one in filters[1:]:\n        chain = F.when(one.removes, F.lit(one.name)).otherwise(chain)",
    ),
    in_error_management(
        "rows that were taken back are not noticed",
        "dynamic_late_data_integrator",
        " or self.processed_rows != self.rows",
        "",
    ),
    in_error_management(
        "the window is a partition too long",
        "static_late_data_integrator",
        "for back in range(self.length, 0, -1))",
        "for back in range(self.length + 1, 0, -1))",
    ),
    in_code(
        "files after the flag are not noticed",
        "platform/patterns/ingestion/readiness_marker.py",
        "if file.mtime_ns > at)",
        "if file.mtime_ns < at)",
        "tests/ingestion/test_readiness_marker.py",
    ),
    # What appears together.
    in_code(
        "a companion forgets how far it has followed",
        COMPANIONS,
        "app_transactions=[Transaction(main, version, _NEVER)],",
        "app_transactions=[],",
        f"{TOGETHER}::test_many_who_look_at_once_follow_a_commit_once",
    ),
    in_code(
        "a version of a companion shows a later commit of its main table",
        COMPANIONS,
        'info.get(FOLLOWED, {}).get("version", -1) > version:',
        'info.get(FOLLOWED, {}).get("version", -1) > version + 1:',
        f"{TOGETHER}::test_each_version_of_the_companion_belongs_to_versions_of_its_main_table",
    ),
    in_engine(
        "a companion may have fewer rows than its main table counts",
        "Companion.java",
        'expected.put(partition.getKey(), Map.of("accounted", here));',
        "expected.put(partition.getKey(), Map.of());",
        f"{TOGETHER}::test_a_companion_that_breaks_its_contract_keeps_both_from_appearing",
    ),
    in_code(
        "a database serves other rows than the ledger has",
        SINK,
        "if row[0] != part.rows:",
        "if row[0] < 0:",
        f"{SERVED}::test_rows_that_are_not_those_of_the_ledger_are_not_served",
    ),
    in_code(
        "a batch that is served is served again",
        SINK,
        "return there >= {part.contract.dataset for part in delivery.parts}",
        "return False",
        f"{SERVED}::test_a_retry_is_a_no_op_also_when_its_rows_are_others",
    ),
    in_code(
        "an older version replaces a newer one in the database",
        SINK,
        "    if newer:",
        "    if False:",
        f"{SERVED}::test_an_older_version_does_not_replace_a_newer_one",
    ),
    in_code(
        "an old execution is merged into what the one before it had left",
        MERGER,
        "version = there[len(kept)].version - 1 if kept else EMPTY",
        "version = kept[-1].version if kept else EMPTY",
        f"{EXECUTIONS}::test_figure_4_7_a_compaction_between_two_runs_is_not_lost",
    ),
    in_code(
        "an execution is taken for done although the table was restored since",
        MERGER,
        "there = applied(events.executions(contract.dataset))",
        "there = tuple(one for one in events.executions(contract.dataset) if one.restored is None)",
        f"{EXECUTIONS}::test_a_run_whose_execution_was_restored_over_is_not_taken_for_done",
    ),
    in_code(
        "nobody looks whether a version can be restored",
        MERGER,
        "    if not restorable(lake, contract.dataset, version):",
        "    if False:",
        f"{EXECUTIONS}::test_a_version_that_a_vacuum_took_is_refused_with_nothing_touched_and_a_rebuild_works",
    ),
    in_code(
        "later executions are not replayed",
        MERGER,
        "return sorted({*wanted, *follow})",
        "return sorted(wanted)",
        f"{PLANNER}::test_a_delivery_that_runs_again_takes_all_later_executions_with_it",
    ),
    in_engine(
        "a restoration is not audited",
        "AuditedTransaction.java",
        "List<Action> all = audited(CollectionConverters.asJava(actions));",
        "List<Action> all = new ArrayList<>(); CollectionConverters.asJava(actions).forEachRemaining(all::add);",
        f"{EXECUTIONS}::test_a_restoration_is_audited_like_every_write",
    ),
    in_code(
        "a line is as old as the hour it was logged in",
        "assets/transforms/access_logs.py",
        'F.when(is_part, part[1]).otherwise(F.col("arrival_hour")).alias("appended")',
        'F.col("arrival_hour").alias("appended")',
        f"{KEYS}::test_the_lines_of_a_log_that_was_landed_later_are_later_whatever_hour_they_were_logged_in",
    ),
    in_code(
        "who is delivered later was there since he registered",
        "assets/transforms/users.py",
        'of_the_first = usable & (F.col("_number") == 0)',
        "of_the_first = usable",
        f"{USERS}::test_users_of_the_first_delivery_were_there_since_they_registered_and_others_since_they_are_delivered",
    ),
    in_code(
        "the first delivery of users tells of no hour before it",
        "assets/staleness.py",
        "told = max(bisect_right(days, hour[:10]), first)",
        "told = bisect_right(days, hour[:10])",
        f"{PLANNER}::test_the_first_delivery_of_users_reaches_the_hours_before_it_and_no_other_does",
    ),
    in_code(
        "hours that have read a compacted version of the users are never up to date",
        "assets/staleness.py",
        'read[bisect_right(made, entry.inputs.get("silver.users", -1))]',
        'dict(zip(made, read[1:])).get(entry.inputs.get("silver.users", -1), -1)',
        f"{PLANNER}::test_hours_that_have_read_a_compacted_version_of_the_users_are_up_to_date",
    ),
    # Tables behind one name.
    in_code(
        "a pointer is changed whatever came in between",
        "platform/patterns/core/members.py",
        "table = DeltaTable(path, version=base.version, storage_options=options)",
        "table = DeltaTable(path, storage_options=options)",
        f"{MEMBERS}::test_a_state_is_changed_once",
    ),
    in_code(
        "of two who replace a partition the last one wins",
        AUDITED_MEMBERS,
        "if _places(base, partitions) != _places(seen, partitions):",
        "if False:",
        f"{LAWS}::test_of_two_at_once_one_publishes_and_the_other_is_told_and_can_run_again[replace_periods-audited]",
    ),
    in_code(
        "a retry shows what was computed from other inputs",
        AUDITED_MEMBERS,
        "json.dumps([commit_id, asdict(provenance)], sort_keys=True, default=str)",
        "json.dumps([commit_id], sort_keys=True, default=str)",
        f"{PROXY}::test_a_run_that_dies_before_the_name_moves_is_made_good_without_a_second_copy",
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
        "platform/patterns/core/lake.py",
        '.option("versionAsOf", member.version)',
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    in_code(
        "retention removes what is visible",
        "platform/patterns/core/retired.py",
        "row.visible_until is None or row.visible_until >= before",
        "row.visible_until is not None and row.visible_until >= before",
        f"{MEMBERS}::test_only_what_nobody_has_seen_for_long_is_removed_and_it_is_said",
    ),
    in_code(
        "rows of another week vanish",
        CLEANER,
        "frame.where(~others) if keys[1:] else frame]",
        "frame.where(F.col(column) == keys[-1])]",
        "tests/idempotency/test_fast_metadata_cleaner.py::test_what_is_refused_of_several_weeks_shows_none_of_them",
    ),
    in_code(
        "a frozen week is replaced",
        CLEANER,
        "    if not thaw:\n",
        "    if False:\n",
        "tests/idempotency/test_fast_metadata_cleaner.py"
        "::test_the_weeks_of_a_final_year_become_one_table_that_is_not_replaced",
    ),
)
