"""Changes to error management, and to what builds on the one way to write."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine, in_error_management

HELD = "tests/planning/test_held.py"
PLAN = "platform/planning/plan.py"
REACH = "platform/planning/reach.py"
PLANNER = "tests/planning/test_plan_of_a_replay.py"
LIMIT = "tests/orchestration/test_replay_limit.py"
EXECUTIONS = "tests/idempotency/test_stateful_merger.py"
REFUSED = "tests/idempotency/test_refused_executions.py"
KEYS = "tests/idempotency/test_keyed_idempotency.py"
MERGES = "tests/idempotency/test_merger.py"
CHANGED = "platform/patterns/idempotency/merger.py"
MERGER = "platform/patterns/idempotency/stateful_merger.py"
COMPANIONS = "platform/lake/companions.py"
SINK = "platform/patterns/idempotency/transactional_sink.py"
TOGETHER = "tests/idempotency/test_transactional_writer.py"
SERVED = "tests/idempotency/test_transactional_sink.py"
DEVICES = "tests/transforms/test_devices.py"
USERS = "tests/transforms/test_users.py"
COMPLETE = "tests/orchestration/test_completeness.py"
COMPLETENESS = "platform/orchestration/completeness.py"

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
        "a partition that is ahead of its time is believed",
        "late_data_detector",
        "latest = F.least(start + F.lit(_micros(Grain.HOUR.length)), F.unix_micros(F.lit(taken_in)))",
        "latest = start + F.lit(_micros(Grain.HOUR.length))",
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
    in_code(
        "a correction behind the watermark is late",
        "assets/transforms/live_visits.py",
        ' & ~F.col("_replay")',
        "",
        "tests/lineage/test_live_replays.py",
    ),
    in_error_management(
        "a correction is landed in an hour whose other lines are gone",
        "dead_letter_replay",
        "    if gone:",
        "    if False:",
    ),
    in_code(
        "a run that others did before the replay counts as done",
        "platform/orchestration/replays.py",
        "version >= first(above).get(key, _NEVER)",
        "version >= -1",
        "tests/sensors/test_replays.py",
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
    in_code(
        "a link is followed out of the landing zone",
        "platform/patterns/ingestion/landed_links.py",
        "    if not _within(target, zone):",
        "    if False:",
        "tests/ingestion/test_landed_links.py",
    ),
    in_engine(
        "a stream reads through a link that leads out of the landing zone",
        "LinesFormat.java",
        "return !path.toRealPath().startsWith(Path.of(within).toRealPath());",
        "return path.toRealPath() == null;",
        "tests/ingestion/test_landed_lines.py::test_a_link_out_of_the_root_is_refused",
    ),
    in_code(
        "an hour without a flag is complete while it is written to",
        "platform/patterns/ingestion/readiness_marker.py",
        "lacks = Lack.QUIET if written > quiet_since else None",
        "lacks = None",
        "tests/ingestion/test_readiness_marker.py",
    ),
    in_code(
        "an hour that never comes is not missed",
        "platform/patterns/ingestion/readiness_marker.py",
        "        if start_of(after, grain) - start_of(before, grain) <= LONGEST_GAP + grain.length:",
        "        if False:",
        "tests/ingestion/test_readiness_marker.py",
    ),
    # What appears together.
    in_code(
        "a companion forgets how far it has followed",
        COMPANIONS,
        "app_transactions=[Transaction(main, version, _NEVER)],",
        "app_transactions=[],",
        f"{TOGETHER}::test_concurrent_readers_follow_a_commit_once",
    ),
    in_code(
        "a version of a companion shows a later commit of its main table",
        COMPANIONS,
        'info.get(FOLLOWED, {}).get("version", -1) > version:',
        'info.get(FOLLOWED, {}).get("version", -1) > version + 1:',
        f"{TOGETHER}::test_each_companion_version_belongs_to_main_versions",
    ),
    in_engine(
        "a companion may have fewer rows than its main table counts",
        "Companion.java",
        'expected.put(partition.getKey(), Map.of("accounted", here));',
        "expected.put(partition.getKey(), Map.of());",
        f"{TOGETHER}::test_a_companion_that_breaks_its_contract_blocks_both",
    ),
    in_code(
        "a database serves other rows than the ledger has",
        SINK,
        "if row[0] != part.rows:",
        "if row[0] < 0:",
        f"{SERVED}::test_rows_that_contradict_the_ledger_are_not_served",
    ),
    in_code(
        "a batch that is served is served again",
        SINK,
        "return there >= {part.contract.dataset for part in delivery.parts}",
        "return False",
        f"{SERVED}::test_a_retry_changes_nothing_despite_other_rows",
    ),
    in_code(
        "a table that was built anew is taken for the one before it",
        SINK,
        "@{part.table_id}:{part.version}",
        "@{part.version}",
        f"{SERVED}::test_a_rebuilt_table_replaces_its_predecessors_rows",
    ),
    in_code(
        "an older version replaces a newer one in the database",
        SINK,
        "    if newer:",
        "    if False:",
        f"{SERVED}::test_an_older_version_never_replaces_a_newer_one",
    ),
    # Merges.
    in_engine(
        "a row that is removed before it was there is inserted",
        "Merge.java",
        ".whenNotMatched(alive)",
        ".whenNotMatched()",
        f"{MERGES}::test_figure_4_4_removed_rows_are_never_inserted",
    ),
    in_code(
        "a row that is removed before it was there is inserted where MERGE cannot be audited",
        CHANGED,
        "arrived = changes.where(alive).select(*columns)",
        "arrived = changes.select(*columns)",
        f"{MERGES}::test_figure_4_4_removed_rows_are_never_inserted",
    ),
    in_code(
        "a change without a mark vanishes",
        CHANGED,
        "changes if deleted is None else all_marked(changes, deleted)",
        "changes",
        f"{MERGES}::test_a_change_without_a_mark_is_refused",
    ),
    in_code(
        "an old execution is merged into what the one before it had left",
        MERGER,
        "version = there[len(kept)].version - 1 if kept else EMPTY",
        "version = kept[-1].version if kept else EMPTY",
        f"{EXECUTIONS}::test_figure_4_7_restoring_keeps_an_earlier_compaction",
    ),
    in_code(
        "an execution is taken for done although the table was restored since",
        MERGER,
        "there = applied(events.executions(contract.dataset))",
        "there = tuple(one for one in events.executions(contract.dataset) if one.restored is None)",
        f"{EXECUTIONS}::test_a_run_restored_over_is_executed_again",
    ),
    in_code(
        "nobody looks whether a version can be restored",
        MERGER,
        "    if not restorable(lake, contract.dataset, version):",
        "    if False:",
        f"{EXECUTIONS}::test_a_vacuumed_version_is_refused_but_rebuilds_work",
    ),
    in_code(
        "a refused execution forgets that an attempt before it has restored the table",
        MERGER,
        "        if not passing:\n",
        "        if restored and not passing:\n",
        f"{REFUSED}::test_a_refused_retry_undoes_the_first_trys_restoration",
    ),
    in_code(
        "a refused execution takes the table back to what the day before it has left",
        MERGER,
        "if made and made[-1].partition == latest), default=0)",
        "if made), default=0)",
        f"{REFUSED}::test_a_refused_later_day_undoes_the_backfill",
    ),
    in_code(
        "a run leaves out what a refusal has taken from the table before its days",
        "platform/evidence/executions.py",
        "wanted = {*asked, *undone(marks)}",
        "wanted = {*asked}",
        f"{REFUSED}::test_a_repeated_run_restores_what_refusal_removed",
    ),
    in_code(
        "a first full delivery joins another that came at the same time",
        "platform/orchestration/step.py",
        "return overwrite_table(rows, target, self._provenance_of(delivery))",
        "return merger.merge(rows, target, self._provenance_of(delivery), deleted=None)",
        f"{MERGES}::test_concurrent_first_full_deliveries_never_mix",
    ),
    in_code(
        "a range is refused when one of its days is not there",
        PLAN,
        'unknown |= set() if found else {f"{begins}..{ends}"}',
        "unknown |= set(parse_keys(part, grain)) - found",
        f"{LIMIT}::test_advised_command_plans_the_whole_range_of_days",
    ),
    in_code(
        "a day that is refused as it is too old is in no plan at all",
        PLAN,
        "        found.update(self._lacking(task))\n",
        "",
        f"{LIMIT}::test_advised_command_plans_the_whole_range_of_days",
    ),
    in_code(
        "later executions are not replayed",
        "platform/evidence/executions.py",
        "return sorted({*wanted, *follow})",
        "return sorted(wanted)",
        f"{PLANNER}::test_replaying_a_delivery_reruns_all_later_executions",
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
        f"{KEYS}::test_lines_of_a_later_log_come_later",
    ),
    in_code(
        "who is delivered later was there since he registered",
        "assets/transforms/users.py",
        'of_the_first = usable & (F.col("_number") == 0)',
        "of_the_first = usable",
        f"{USERS}::test_only_first_delivered_users_begin_at_registration",
    ),
    in_code(
        "the first delivery of users tells of no hour before it",
        REACH,
        "count = max(bisect_right(days, hour[:10]), first)",
        "count = bisect_right(days, hour[:10])",
        f"{PLANNER}::test_only_the_first_user_delivery_reaches_earlier_hours",
    ),
    in_code(
        "a second list of devices of a day is merged onto the first",
        "assets/transforms/devices.py",
        'before.where(F.col("changed_on") < day)',
        'before.where(F.col("changed_on") <= day)',
        f"{DEVICES}::test_a_days_second_list_replaces_its_first",
    ),
    in_code(
        "hours do not wait for the list of devices of their day",
        REACH,
        "return [(delivered_on(entry), entry) for entry in look.history(self.delivered)]",
        "return []",
        f"{PLANNER}::test_a_newer_device_list_outdates_hours_since_it",
    ),
    in_code(
        "hours that have read a compacted version of the users are never up to date",
        REACH,
        "published[key].inputs.get(edge.above, -1) < version",
        "published[key].inputs.get(edge.above, -1) != version",
        f"{PLANNER}::test_compacting_users_makes_no_hour_stale",
    ),
    in_code(
        "hours of mostly dead letters are computed like any other",
        PLAN,
        "                lacking.pop(key, None)\n",
        "                pass\n",
        f"{HELD}::test_only_hours_touched_by_bad_arrivals_wait",
    ),
    in_code(
        "what a person has accepted is judged again",
        "platform/planning/held.py",
        "if not _accepted(history, suspect[hour], version):",
        "if suspect[hour].version > version:",
        f"{HELD}::test_accepted_hours_wait_again_only_when_worse",
    ),
    in_code(
        "a run of another day hides one that lacks hours",
        COMPLETENESS,
        "if first <= period <= last and not",
        "if period == last and not",
        f"{COMPLETE}::test_a_complete_day_hides_no_earlier_incomplete_one",
    ),
    in_code(
        "a day that is running is warned of",
        COMPLETENESS,
        "if first <= period <= last and not",
        "if first <= period and not",
        f"{COMPLETE}::test_a_day_that_is_running_is_no_warning",
    ),
    in_code(
        "a day without a visit lacks all of its hours",
        COMPLETENESS,
        "present.update(_without_rows(events, empty, grain))",
        "present.update(dict.fromkeys(empty, 0))",
        f"{COMPLETE}::test_an_empty_day_counts_its_published_hours",
    ),
)
