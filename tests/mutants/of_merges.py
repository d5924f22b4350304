"""Defects of merges, of their executions, and of the plan of a replay."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine

PLAN = "platform/blogdata/planning/plan.py"
STALENESS = "platform/blogdata/planning/staleness.py"
PLANNER = "tests/planning/test_plan_of_a_replay.py"
LIMIT = "tests/orchestration/test_replay_limit.py"
EXECUTIONS = "tests/idempotency/test_stateful_merger.py"
REFUSED = "tests/idempotency/test_refused_executions.py"
MERGES = "tests/idempotency/test_merger.py"
CHANGED = "platform/blogdata/patterns/idempotency/merger.py"
MERGER = "platform/blogdata/patterns/idempotency/stateful_merger.py"

MERGED = (
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
        "changes remove everybody whom they do not name",
        "platform/blogdata/orchestration/step.py",
        "return rows if isinstance(delivery, Changes) else merger.with_removals(rows, before, target.contract)",
        "return merger.with_removals(rows, before, target.contract)",
        "tests/lineage/test_changed_users.py::test_figure_4_4_merger_inserts_updates_and_deletes_changed_users",
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
        "a table without a version to restore cannot be rebuilt from its raw rows",
        MERGER,
        "    return version == EMPTY or lake.is_whole(dataset, version)",
        "    return lake.is_whole(dataset, version)",
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
        f"{REFUSED}::test_a_repeated_run_restores_what_refusal_removed",
    ),
    in_code(
        "a run leaves out what a refusal has taken from the table before its days",
        "platform/blogdata/evidence/executions.py",
        "wanted = {*asked, *undone(marks)}",
        "wanted = {*asked}",
        f"{REFUSED}::test_a_repeated_run_restores_what_refusal_removed",
    ),
    in_code(
        "a first full delivery joins another that came at the same time",
        "platform/blogdata/orchestration/step.py",
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
        STALENESS,
        "        found.update(self._lacking(task))\n",
        "",
        f"{LIMIT}::test_advised_command_plans_the_whole_range_of_days",
    ),
    in_code(
        "later executions are not replayed",
        "platform/blogdata/evidence/executions.py",
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
)
