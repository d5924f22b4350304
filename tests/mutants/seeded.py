"""Small harmful changes to the mechanics, each of which some test must notice (`make mutants`)."""

from __future__ import annotations

from dataclasses import dataclass

LAWS = "tests/laws/test_laws.py"
PUBLISH = "tests/core/test_publish.py"
CLAIMS = "tests/core/test_claims.py"
LEDGER = "tests/core/test_ledger.py"
PLANNER = "tests/orchestration/test_replay_planner.py"
EXECUTIONS = "tests/idempotency/test_stateful_merger.py"
KEYS = "tests/idempotency/test_keyed_idempotency.py"
MERGER = "platform/patterns/idempotency/stateful_merger.py"
ENGINE = "platform/engine/java/io/blogdata/engine"
ONE_WAY = "platform/patterns/quality/audit_write_audit_publish.py"
ERRORS = "platform/patterns/error_management"
COMPANIONS = "platform/patterns/core/companions.py"
SINK = "platform/patterns/idempotency/transactional_sink.py"
TOGETHER = "tests/idempotency/test_transactional_writer.py"
SERVED = "tests/idempotency/test_transactional_sink.py"
MEMBERS = "tests/core/test_members.py"
PROXY = "tests/idempotency/test_proxy.py"
AUDITED_MEMBERS = "platform/patterns/idempotency/audited_members.py"
CLEANER = "platform/patterns/idempotency/fast_metadata_cleaner.py"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One harmful change.

    Args:
        name: What it does, for people.
        file: The file it changes, relative to the project's root.
        old: The text it replaces; occurs once.
        new: What it puts there.
        noticed_by: The tests that must fail, as pytest takes them.
    """

    name: str
    file: str
    old: str
    new: str
    noticed_by: tuple[str, ...]


def _engine(name: str, file: str, old: str, new: str, *noticed_by: str) -> Mutant:
    return Mutant(name=name, file=f"{ENGINE}/{file}", old=old, new=new, noticed_by=noticed_by)


def _error(name: str, module: str, old: str, new: str) -> Mutant:
    noticed_by = (f"tests/error_management/test_{module}.py",)
    return Mutant(name=name, file=f"{ERRORS}/{module}.py", old=old, new=new, noticed_by=noticed_by)


def _core(name: str, file: str, old: str, new: str, *noticed_by: str) -> Mutant:
    return Mutant(name=name, file=file, old=old, new=new, noticed_by=noticed_by)


MUTANTS = (
    # The one way to write.
    _core(
        "a write replaces the whole table instead of its partitions",
        ONE_WAY,
        'return {"replaceWhere": self.predicate}',
        'return {"replaceWhere": "true"}',
        f"{LAWS}::test_a_backfill_in_any_order_ends_in_the_same_table",
    ),
    _core(
        "a write is not told from its repetition",
        ONE_WAY,
        '.option("txnAppId", writer_id).option("txnVersion", number)',
        "",
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    _core(
        "two streams write under one identity",
        ONE_WAY,
        'return f"{dataset}/{self.stream}"',
        'return f"{dataset}"',
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
    ),
    _core(
        "the ledger forgets what was appended before",
        "platform/patterns/core/events.py",
        "entry.after(lines[partition]) if partition in lines else entry",
        "entry",
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    _core(
        "all runs write under one identity",
        ONE_WAY,
        'f"{target.contract.dataset}/{span}/{target.run.run_id}"',
        'f"{target.contract.dataset}/{span}"',
        f"{LAWS}::test_of_two_at_once_one_publishes_and_the_other_is_told_and_can_run_again",
        f"{PUBLISH}::test_other_runs_replace_the_partition_and_its_neighbours_stay",
    ),
    _core(
        "different batches of a run write under one identity",
        ONE_WAY,
        'f"{target.contract.dataset}/{span}/{target.run.run_id}"',
        'f"{target.contract.dataset}/{target.run.run_id}"',
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
    ),
    _core(
        "the account of the layer above is not passed on",
        ONE_WAY,
        "specify(contract, partitions, provenance.accounts, info",
        "specify(contract, partitions, {}, info",
        f"{LAWS}::test_a_row_that_vanished_on_the_way_is_refused",
    ),
    _core(
        "the receipt is that of the newest commit, whoever wrote it",
        ONE_WAY,
        'if info and info["commit_id"] == commit_id:',
        "if info:",
        f"{LAWS}::test_a_commit_that_came_in_between_is_not_taken_for_ones_own",
    ),
    _core(
        "the checkpoint is written before it is judged",
        ONE_WAY,
        "if judgement.violations:",
        "if False:",
        f"{LAWS}::test_a_row_that_vanished_on_the_way_is_refused",
    ),
    _core(
        "partitions that have no rows any more are not named",
        "platform/patterns/idempotency/data_overwrite.py",
        "keys = sorted(set(partitions))",
        'keys = sorted({row[0] for row in frame.select(column.column).distinct().collect()}) or ["none"]',
        f"{LAWS}::test_an_empty_input_is_a_fact",
    ),
    _core(
        "a lost race is a permanent fault",
        "platform/patterns/quality/write_faults.py",
        '"""Another writer published first."""\n\n    transient: ClassVar[bool] = True',
        '"""Another writer published first."""',
        f"{LAWS}::test_of_two_at_once_one_publishes_and_the_other_is_told_and_can_run_again",
    ),
    # The engine.
    _engine(
        "violations do not stop a commit",
        "AuditedWrite.java",
        "if (!audit.violations().isEmpty()) {",
        "if (false) {",
        f"{LAWS}::test_a_row_that_vanished_on_the_way_is_refused",
    ),
    _engine(
        "the commit comes before the audit",
        "AuditedTransaction.java",
        "    info = audit.apply(this, all);\n",
        "    super.commitImpl(actions, operation, canSkipEmptyCommits, tags);\n    info = audit.apply(this, all);\n",
        f"{LAWS}::test_cut_off_at_any_phase_and_run_again_is_run_once",
    ),
    _engine(
        "what was executed is executed again",
        "AuditedTransaction.java",
        "if (transaction.txnVersion(once.appId()) >= once.version()) {",
        "if (false) {",
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    _engine(
        "the account is not compared",
        "Audit.java",
        "      audit.compareWithExpected();\n",
        "",
        f"{LAWS}::test_a_row_that_vanished_on_the_way_is_refused",
    ),
    _engine(
        "repeated keys are not judged",
        "Audit.java",
        'functions.col("rows").gt(1)',
        'functions.col("rows").gt(1000000)',
        f"{PUBLISH}::test_all_violations_of_a_batch_are_named_at_once",
    ),
    _engine(
        "broken rules are not judged",
        "Audit.java",
        "if (rows != null && ((Number) rows).longValue() != 0) {",
        "if (false) {",
        f"{PUBLISH}::test_all_violations_of_a_batch_are_named_at_once",
    ),
    _engine(
        "audits of a partition are not judged",
        "Audit.java",
        "if (!Boolean.TRUE.equals(value)) {",
        "if (false) {",
        f"{PUBLISH}::test_all_violations_of_a_batch_are_named_at_once",
    ),
    # Ledger, events, claims.
    _core(
        "rows too many are no problem",
        "platform/patterns/core/ledger.py",
        "if entry.missing < 0:",
        "if False:",
        LEDGER,
    ),
    _core(
        "rows that are gone from a table are no problem",
        "platform/patterns/core/ledger.py",
        "if rows_there != entry.rows_out:",
        "if False:",
        LEDGER,
    ),
    _core(
        "rows nobody accounts for are not looked for",
        "platform/patterns/core/ledger.py",
        "for key in sorted(set(there) - known):",
        "for key in ():",
        LEDGER,
    ),
    _core(
        "a commit whose process died before it was recorded stays unknown",
        "platform/patterns/core/events.py",
        "if version is not None and recorded < version:",
        "if False:",
        f"{LEDGER}",
        f"{LAWS}::test_cut_off_at_any_phase_and_run_again_is_run_once",
    ),
    _core(
        "a claim that failed is taken for made",
        "platform/patterns/core/claims.py",
        "time.sleep(random.uniform(0.005, 0.05))\n                continue",
        "return",
        CLAIMS,
    ),
    _core(
        "a claim is taken whoever holds it",
        "platform/patterns/core/claims.py",
        "if key not in claims or claims[key].owner == owner]",
        "if True]",
        CLAIMS,
    ),
    _core(
        "the dead hold their claims for ever",
        "platform/patterns/core/claims.py",
        "living = {claim.partition: claim for claim in there if self._alive(claim)}",
        "living = {claim.partition: claim for claim in there}",
        CLAIMS,
    ),
    # Planning.
    _core(
        "gaps are run over",
        "platform/patterns/core/partitions.py",
        "if run and following(run[-1], grain) != key:",
        "if False:",
        PLANNER,
    ),
    _core(
        "what only followed is taken for asked",
        "platform/orchestration/replay_planner.py",
        "above = asked.get(link.above, {}) if link.asked_only else wanted.get(link.above, {})",
        "above = wanted.get(link.above, {})",
        PLANNER,
    ),
    _core(
        "an hour of arrival reaches its own hour only",
        "assets/plan.py",
        "                touched.setdefault(hour, key)\n",
        "                pass\n",
        PLANNER,
    ),
    # Error management.
    _error(
        "the last of several rows wins",
        "windowed_deduplicator",
        "in_order = together.orderBy(*order)",
        "in_order = together.orderBy(*[F.desc(name) for name in order])",
    ),
    _error(
        "a watermark goes back",
        "late_data_detector",
        "watermark=_later(self.watermark, candidate)",
        "watermark=candidate",
    ),
    _error(
        "a row at the watermark is late",
        "late_data_detector",
        "& (time < mark)",
        "& (time <= mark)",
    ),
    _error(
        "a wild time in the future is believed",
        "late_data_detector",
        "for one in by_key[key] if one not in ignored",
        "for one in by_key[key]",
    ),
    _error(
        "a batch has the files of the one before it",
        "checkpointer",
        "if after < at <= ends[batch]",
        "if after <= at <= ends[batch]",
    ),
    _error(
        "a stream goes on with the checkpoint of another",
        "checkpointer",
        "    if changed:",
        "    if False:",
    ),
    _error(
        "a checkpoint's files are not held against their sums",
        "checkpointer",
        "if sums.exists() and not _sums_up(content, sums.read_bytes())",
        "if False",
    ),
    _error(
        "what comes again replaces what was published",
        "windowed_deduplicator",
        'orderBy(F.desc("_known"), *order)',
        'orderBy(F.asc("_known"), *order)',
    ),
    _error(
        "a stream is judged by all its rows, not by the newest",
        "dead_letter",
        "            if rows >= self.over_rows:",
        "            if rows >= 2 * self.over_rows:",
    ),
    _error(
        "only the first reason of a dead letter is kept",
        "dead_letter",
        "named = F.array(*[F.when(rule.condition, F.lit(rule.name)) for rule in rules])",
        "named = F.array(F.coalesce(*[F.when(rule.condition, F.lit(rule.name)) for rule in rules]))",
    ),
    _error(
        "an unknown condition is no reason",
        "dead_letter",
        "condition=source.isNotNull() & result.isNull()",
        "condition=result.isNull()",
    ),
    _error(
        "a replay has another name each time",
        "dead_letter_replay",
        'f"{position[0]}:{position[1]}".encode()',
        "f\"{position[0]}:{position[1]}:{__import__('time').time_ns()}\".encode()",
    ),
    _error(
        "a row is counted by the last filter that removes it",
        "filter_interceptor",
        "for one in filters[1:]:\n        chain = chain.when(one.removes, F.lit(one.name))",
        "for one in filters[1:]:\n        chain = F.when(one.removes, F.lit(one.name)).otherwise(chain)",
    ),
    _error(
        "rows that were taken back are not noticed",
        "dynamic_late_data_integrator",
        " or self.processed_rows != self.rows",
        "",
    ),
    _error(
        "the window is a partition too long",
        "static_late_data_integrator",
        "for back in range(self.length, 0, -1))",
        "for back in range(self.length + 1, 0, -1))",
    ),
    _core(
        "files after the flag are not noticed",
        "platform/patterns/ingestion/readiness_marker.py",
        "if file.mtime_ns > at)",
        "if file.mtime_ns < at)",
        "tests/ingestion/test_readiness_marker.py",
    ),
    # What appears together.
    _core(
        "a companion forgets how far it has followed",
        COMPANIONS,
        "app_transactions=[Transaction(main, version)],",
        "app_transactions=[],",
        f"{TOGETHER}::test_many_who_look_at_once_follow_a_commit_once",
    ),
    _core(
        "a version of a companion shows a later commit of its main table",
        COMPANIONS,
        'info.get(FOLLOWED, {}).get("version", -1) > version:',
        'info.get(FOLLOWED, {}).get("version", -1) > version + 1:',
        f"{TOGETHER}::test_each_version_of_the_companion_belongs_to_versions_of_its_main_table",
    ),
    _engine(
        "a companion may have fewer rows than its main table counts",
        "Companion.java",
        'expected.put(partition.getKey(), Map.of("accounted", here));',
        "expected.put(partition.getKey(), Map.of());",
        f"{TOGETHER}::test_a_companion_that_breaks_its_contract_keeps_both_from_appearing",
    ),
    _core(
        "a database serves other rows than the ledger has",
        SINK,
        "if row[0] != part.rows:",
        "if row[0] < 0:",
        f"{SERVED}::test_rows_that_are_not_those_of_the_ledger_are_not_served",
    ),
    _core(
        "a batch that is served is served again",
        SINK,
        "return connection.execute(query, [delivery.batch_id]).fetchone() is not None",
        "return False",
        f"{SERVED}::test_a_retry_is_a_no_op_also_when_its_rows_are_others",
    ),
    _core(
        "an older version replaces a newer one in the database",
        SINK,
        "    if newer:",
        "    if False:",
        f"{SERVED}::test_an_older_version_does_not_replace_a_newer_one",
    ),
    _core(
        "an old execution is merged into what the one before it had left",
        MERGER,
        "version = there[len(kept)].version - 1 if kept else EMPTY",
        "version = kept[-1].version if kept else EMPTY",
        f"{EXECUTIONS}::test_figure_4_7_a_compaction_between_two_runs_is_not_lost",
    ),
    _core(
        "an execution is taken for done although the table was restored since",
        MERGER,
        "there = applied(events.executions(contract.dataset))",
        "there = tuple(one for one in events.executions(contract.dataset) if one.restored is None)",
        f"{EXECUTIONS}::test_a_run_whose_execution_was_restored_over_is_not_taken_for_done",
    ),
    _core(
        "nobody looks whether a version can be restored",
        MERGER,
        "    if not restorable(lake, contract.dataset, version):",
        "    if False:",
        f"{EXECUTIONS}::test_a_version_that_a_vacuum_took_is_refused_with_nothing_touched_and_a_rebuild_works",
    ),
    _core(
        "later executions are not replayed",
        MERGER,
        "return sorted({*wanted, *follow})",
        "return sorted(wanted)",
        f"{PLANNER}::test_a_delivery_that_runs_again_takes_all_later_executions_with_it",
    ),
    _engine(
        "a restoration is not audited",
        "AuditedTransaction.java",
        "List<Action> all = audited(CollectionConverters.asJava(actions));",
        "List<Action> all = new ArrayList<>(); CollectionConverters.asJava(actions).forEachRemaining(all::add);",
        f"{EXECUTIONS}::test_a_restoration_is_audited_like_every_write",
    ),
    _core(
        "a line is as old as the hour it was logged in",
        "assets/transforms/access_logs.py",
        'F.when(is_part, part[1]).otherwise(F.col("arrival_hour")).alias("appended")',
        'F.col("arrival_hour").alias("appended")',
        f"{KEYS}::test_the_lines_of_a_log_that_was_landed_later_are_later_whatever_hour_they_were_logged_in",
    ),
    # Tables behind one name.
    _core(
        "a pointer is changed whatever came in between",
        "platform/patterns/core/members.py",
        "table = DeltaTable(path, version=base.version, storage_options=options)",
        "table = DeltaTable(path, storage_options=options)",
        f"{MEMBERS}::test_a_state_is_changed_once",
    ),
    _core(
        "of two who replace a partition the last one wins",
        AUDITED_MEMBERS,
        "if _places(base, partitions) != _places(seen, partitions):",
        "if False:",
        f"{LAWS}::test_of_two_at_once_one_publishes_and_the_other_is_told_and_can_run_again",
    ),
    _core(
        "a retry shows what was computed from other inputs",
        AUDITED_MEMBERS,
        "json.dumps([commit_id, asdict(provenance)], sort_keys=True, default=str)",
        "json.dumps([commit_id], sort_keys=True, default=str)",
        f"{PROXY}::test_a_run_that_dies_before_the_name_moves_is_made_good_without_a_second_copy",
    ),
    _core(
        "a copy can be written again",
        AUDITED_MEMBERS,
        "    _close(target.lake, table)\n",
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    _core(
        "what is appended to a copy is read",
        "platform/patterns/core/lake.py",
        '.option("versionAsOf", member.version)',
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    _core(
        "retention removes what is visible",
        "platform/patterns/core/retired.py",
        "row.visible_until is None or row.visible_until >= before",
        "row.visible_until is not None and row.visible_until >= before",
        f"{MEMBERS}::test_only_what_nobody_has_seen_for_long_is_removed_and_it_is_said",
    ),
    _core(
        "rows of another week vanish",
        CLEANER,
        "frame.where(~others) if keys[1:] else frame]",
        "frame.where(F.col(column) == keys[-1])]",
        "tests/idempotency/test_fast_metadata_cleaner.py::test_what_is_refused_of_several_weeks_shows_none_of_them",
    ),
    _core(
        "a frozen week is replaced",
        CLEANER,
        "    if not thaw:\n",
        "    if False:\n",
        "tests/idempotency/test_fast_metadata_cleaner.py"
        "::test_the_weeks_of_a_final_year_become_one_table_that_is_not_replaced",
    ),
)
