"""Defects of the one way to write, of its records, and of plans made from them."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine

LAWS = "tests/laws/test_laws.py"
PUBLISH = "tests/publish/test_publish.py"
CLAIMS = "tests/evidence/test_claims.py"
LEDGER = "tests/evidence/test_ledger.py"
PLANNER = "tests/planning/test_plan_of_a_replay.py"
REACH = "platform/blogdata/planning/reach.py"
INTEGRATOR = "platform/blogdata/patterns/error_management/dynamic_late_data_integrator.py"
SLICED = "tests/planning/test_slices.py"
SLICES = "platform/blogdata/orchestration/slices.py"
ONE_WAY = "platform/blogdata/publish/publication.py"
CHANGES = "platform/blogdata/publish/changes.py"
UNMOVED = "platform/blogdata/publish/unmoved.py"
TWO_MERGES = f"{LAWS}::test_without_the_jar_a_concurrent_merge_conflicts"

WRITING = (
    # The one way to write.
    in_code(
        "a write replaces the whole table instead of its partitions",
        CHANGES,
        'return {"replaceWhere": self.predicate}',
        'return {"replaceWhere": "true"}',
        f"{LAWS}::test_a_backfill_in_any_order_gives_one_table",
    ),
    in_code(
        "a write is not told from its repetition",
        ONE_WAY,
        '"txnAppId": writer_id',
        '"txnAppId": f"{writer_id}/{time.time()}"',
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    in_code(
        "two streams write under one identity",
        CHANGES,
        'return f"{dataset}/{self.stream}"',
        'return f"{dataset}"',
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
    ),
    in_code(
        "versions are counted down from the newest commit there is",
        "platform/blogdata/lake/store.py",
        'f"_delta_log/{version:020d}.json"',
        'f"_delta_log/{DeltaTable(table.table_uri).version() - table.version() + version:020d}.json"',
        "tests/lake/test_commits.py::test_later_commits_do_not_shift_the_versions",
    ),
    in_code(
        "two begin the event log at once",
        "platform/blogdata/evidence/events.py",
        "max_commit_retries=0 if begins else None,",
        "max_commit_retries=None,",
        "tests/evidence/test_event_log.py::test_two_writers_at_once_begin_one_log",
    ),
    in_code(
        "what was read of a dataset is never read again",
        "platform/blogdata/evidence/events.py",
        "if known is None or known.log is not log or known.gone != gone:",
        "if known is None:",
        "tests/evidence/test_event_log.py::test_lines_are_read_again_only_when_their_dataset_has_new_events",
    ),
    in_code(
        "two compact the event log at once",
        "platform/blogdata/evidence/compaction.py",
        'write_deltalake(table, rows, mode="overwrite", commit_properties=once, writer_properties=ZSTD)',
        "table.optimize.compact()",
        "tests/evidence/test_event_log.py::test_of_two_compactions_at_once_one_succeeds",
    ),
    in_code(
        "the ledger forgets what was appended before",
        "platform/blogdata/evidence/lines.py",
        "entry.after(lines[partition]) if partition in lines else entry",
        "entry",
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    in_code(
        "all runs write under one identity",
        ONE_WAY,
        'f"{target.contract.dataset}/{span}/{target.run.run_id}"',
        'f"{target.contract.dataset}/{span}"',
        f"{LAWS}::test_of_two_writers_at_once_one_publishes",
        "tests/idempotency/test_data_overwrite.py::test_another_run_replaces_only_its_partition",
    ),
    in_code(
        "different batches of a run write under one identity",
        ONE_WAY,
        'f"{target.contract.dataset}/{span}/{target.run.run_id}"',
        'f"{target.contract.dataset}/{target.run.run_id}"',
        f"{LAWS}::test_one_run_publishes_each_of_its_batches",
    ),
    in_code(
        "the account of the layer above is not passed on",
        ONE_WAY,
        "        provenance.accounts,\n        info,",
        "        {},\n        info,",
        f"{LAWS}::test_a_vanished_row_is_refused",
    ),
    in_code(
        "the receipt is that of the newest commit, whoever wrote it",
        ONE_WAY,
        'if info is not None and info["commit_id"] == commit_id:',
        "if info is not None:",
        f"{LAWS}::test_a_run_finds_its_own_commit_among_others",
    ),
    in_code(
        "the checkpoint is written before it is judged",
        ONE_WAY,
        "if judgement.violations:",
        "if False:",
        f"{LAWS}::test_a_vanished_row_is_refused",
    ),
    in_code(
        "partitions that have no rows any more are not named",
        "platform/blogdata/patterns/idempotency/data_overwrite.py",
        "keys = sorted(set(partitions))",
        'keys = sorted({row[0] for row in frame.select(column.column).distinct().collect()}) or ["none"]',
        f"{LAWS}::test_an_empty_input_is_published",
    ),
    in_code(
        "a lost race is a permanent fault",
        "platform/blogdata/publish/write_faults.py",
        '"""Another writer published first."""\n\n    transient: ClassVar[bool] = True',
        '"""Another writer published first."""',
        f"{LAWS}::test_of_two_writers_at_once_one_publishes",
    ),
    in_code(
        "what is published is recorded first",
        ONE_WAY,
        "            _write(rows, target, spec, change, commit_id, companion_rows)\n",
        "            from blogdata.evidence.event import publication_events\n"
        "            from blogdata.evidence.events import EventLog\n"
        "            seen = judge(rows, spec)\n"
        '            told = {**spec.info, "measures": seen.measures, "breakdowns": seen.breakdowns}\n'
        "            events = publication_events(contract.dataset, before + 1, int(time.time() * 1000), told)\n"
        "            EventLog(lake).append(list(events))\n"
        "            _write(rows, target, spec, change, commit_id, companion_rows)\n",
        f"{LAWS}::test_cut_off_and_run_again_is_run_once",
    ),
    in_code(
        "rows are written whatever the table has by then",
        UNMOVED,
        "    return rows.unionByName(refusal)\n",
        "    return rows\n",
        TWO_MERGES,
    ),
    in_code(
        "the rows a table has now are looked up at the version they were computed from",
        UNMOVED,
        'now = spark.read.format("delta").load(path)',
        'now = spark.read.format("delta").option("versionAsOf", at).load(path)',
        TWO_MERGES,
    ),
    # The engine.
    in_engine(
        "violations do not stop a commit",
        "AuditedWrite.java",
        "if (!audit.violations().isEmpty()) {",
        "if (false) {",
        f"{LAWS}::test_a_vanished_row_is_refused",
    ),
    in_engine(
        "the commit comes before the audit",
        "AuditedTransaction.java",
        "    List<Action> all = audited(CollectionConverters.asJava(actions).iterator());\n"
        "    Option<Object> version = super.commitImpl(Scala.seq(all), operation, canSkipEmptyCommits, tags);\n",
        "    List<Action> all = new ArrayList<>(CollectionConverters.asJava(actions));\n"
        "    try { info = audit.apply(this, all); } catch (AuditFailed later) { info = null; }\n"
        "    all.addAll(marks);\n"
        "    Option<Object> version = super.commitImpl(Scala.seq(all), operation, canSkipEmptyCommits, tags);\n"
        "    audited(CollectionConverters.asJava(actions).iterator());\n",
        f"{LAWS}::test_cut_off_and_run_again_is_run_once",
    ),
    in_engine(
        "whether a batch was executed is looked up without depending on the answer",
        "AuditedTransaction.java",
        "if (transaction.txnVersion(once.appId()) >= once.version()) {",
        "if ((long) CollectionConverters.asJava(begun.snapshot().transactions()).getOrDefault(once.appId(), -1L)"
        " >= once.version()) {",
        f"{LAWS}::test_of_two_writers_one_publishes_a_stream_batch",
    ),
    in_engine(
        "what was executed is executed again",
        "AuditedTransaction.java",
        "if (transaction.txnVersion(once.appId()) >= once.version()) {",
        "if (false) {",
        f"{LAWS}::test_run_twice_is_run_once",
    ),
    in_engine(
        "a batch does not mind who has come since it looked",
        "AuditedTransaction.java",
        "      TableMoved.unlessTurn(turn.version(), transaction.txnVersion(turn.appId()) + 1);\n",
        "",
        f"{PUBLISH}::test_a_batch_with_an_outdated_turn_is_refused",
    ),
    in_engine(
        "the account is not compared",
        "Audit.java",
        "      audit.compareWithExpected();\n",
        "",
        f"{LAWS}::test_a_vanished_row_is_refused",
    ),
    in_engine(
        "repeated keys are not judged",
        "Audit.java",
        'functions.col("rows").gt(1)',
        'functions.col("rows").gt(1000000)',
        f"{PUBLISH}::test_rules_beyond_table_constraints_are_audited",
    ),
    in_engine(
        "broken rules are not judged",
        "Audit.java",
        "if (rows != null && ((Number) rows).longValue() != 0) {",
        "if (false) {",
        f"{PUBLISH}::test_a_rule_is_audited_without_its_table_constraint",
    ),
    in_engine(
        "audits of a partition are not judged",
        "Audit.java",
        "if (!Boolean.TRUE.equals(value)) {",
        "if (false) {",
        f"{PUBLISH}::test_rules_beyond_table_constraints_are_audited",
    ),
    # Ledger, events, claims.
    in_code(
        "rows too many are no problem",
        "platform/blogdata/evidence/ledger.py",
        "if entry.missing < 0:",
        "if False:",
        LEDGER,
    ),
    in_code(
        "rows that are gone from a table are no problem",
        "platform/blogdata/evidence/ledger.py",
        "if rows_there != entry.rows_kept:",
        "if False:",
        LEDGER,
    ),
    in_code(
        "rows nobody accounts for are not looked for",
        "platform/blogdata/evidence/ledger.py",
        "for key in sorted(set(there) - known):",
        "for key in ():",
        LEDGER,
    ),
    in_code(
        "a commit whose process died before it was recorded stays unknown",
        "platform/blogdata/evidence/events.py",
        "if table is None or recorded >= table.version():",
        "if True:",
        f"{LEDGER}",
        f"{LAWS}::test_cut_off_and_run_again_is_run_once",
    ),
    in_code(
        "a claim that failed is taken for made",
        "platform/blogdata/evidence/claims.py",
        "time.sleep(random.uniform(0.005, 0.05))\n                continue",
        "return",
        CLAIMS,
    ),
    in_code(
        "a claim is taken whoever holds it",
        "platform/blogdata/evidence/claims.py",
        "if key not in claims or claims[key].owner == owner]",
        "if True]",
        CLAIMS,
    ),
    in_code(
        "the dead hold their claims for ever",
        "platform/blogdata/evidence/claims.py",
        "living = {claim.partition: claim for claim in there if self._alive(claim)}",
        "living = {claim.partition: claim for claim in there}",
        CLAIMS,
    ),
    in_code(
        "a run computes what another one has claimed",
        "platform/blogdata/orchestration/turns.py",
        "while not (taken := set(held.take(wanted, owner))) and waits:",
        "while not (taken := wanted) and waits:",
        "tests/lineage/test_concurrent_runs.py::test_only_one_concurrent_run_computes_each_partition",
    ),
    # Planning.
    in_code(
        "a period is stale only when its newest hour is newer",
        REACH,
        "newest[period] = max(entry.version, newest.get(period, -1))",
        "newest[period] = entry.version",
        "tests/planning/test_late_rows.py::test_any_hour_of_a_day_makes_it_stale",
    ),
    in_code(
        "rows that are gone again leave their hour as it was",
        REACH,
        "max(line.updated, line.processed + line.behind)",
        "line.updated",
        "tests/planning/test_late_rows.py::test_a_withdrawn_late_row_reruns_its_hour",
    ),
    in_code(
        "what only followed is taken for asked",
        REACH,
        "if asked.get(edge.above):",
        "if wanted.get(edge.above):",
        PLANNER,
    ),
    in_code(
        "an hour of arrival reaches its own hour only",
        REACH,
        "                    touched.setdefault(hour, key)\n",
        "                    pass\n",
        PLANNER,
    ),
    # What only adds rows.
    in_code(
        "a late duplicate is added beside the row that it repeats",
        SLICES,
        "if key not in again",
        "if True or key not in again",
        "tests/lineage/test_slices.py",
    ),
    in_code(
        "rows are added to an hour whose earlier arrivals have changed",
        INTEGRATOR,
        "unchanged = sum(rows[arrival] for arrival in old) == integrated[key].rows_in",
        "unchanged = True",
        f"{SLICED}::test_only_later_arrivals_may_be_new",
    ),
    in_code(
        "rows of an earlier arrival are added",
        INTEGRATOR,
        'later = bool(new) and max(old, default="") < new[0]',
        "later = bool(new)",
        f"{SLICED}::test_only_later_arrivals_may_be_new",
    ),
    in_code(
        "rows are added to a table that has changed",
        CHANGES,
        '"kept": json.dumps(self.kept), "at": str(self.at)',
        '"kept": json.dumps(self.kept)',
        "tests/idempotency/test_data_overwrite.py::test_rows_are_not_added_to_a_table_that_has_changed",
    ),
    in_engine(
        "added rows are audited without those that are there",
        "AuditedWrite.java",
        "keep(kept, open, actions).forEach(file -> files.put(file.path(), file));",
        "keep(kept, open, actions);",
        "tests/idempotency/test_data_overwrite.py::test_added_rows_are_audited_with_those_that_are_there",
    ),
)
