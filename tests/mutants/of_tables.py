"""Changes to what keeps several tables behind one name."""

from __future__ import annotations

from mutants.mutant import in_code

LAWS = "tests/laws/test_laws.py"
DAMAGE = "tests/evidence/test_repair.py"
MEMBERS = "tests/lake/test_members.py"
PROXY = "tests/idempotency/test_proxy.py"
AUDITED_MEMBERS = "platform/patterns/idempotency/audited_members.py"
CLEANER = "platform/patterns/idempotency/fast_metadata_cleaner.py"

TABLES = (
    in_code(
        "a pointer is changed whatever came in between",
        "platform/lake/members.py",
        "table = DeltaTable(path, version=base.version, storage_options=options)",
        "table = DeltaTable(path, storage_options=options)",
        f"{MEMBERS}::test_a_state_is_changed_once",
    ),
    in_code(
        "of two who replace a partition the last one wins",
        AUDITED_MEMBERS,
        "if _places(base, partitions) != _places(planned_from, partitions):",
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
        "platform/lake/lake.py",
        '.option("versionAsOf", member.version)',
        "",
        f"{PROXY}::test_a_copy_is_never_written_again",
    ),
    in_code(
        "retention removes what is visible",
        "platform/lake/retired.py",
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
    in_code(
        "a repair takes back nothing of days that build on one another",
        "platform/evidence/repair.py",
        "    if contract.executed is not None:\n",
        "    if False:\n",
        f"{DAMAGE}::test_a_lost_file_of_executions_that_build_on_one_another_costs_all_of_them",
    ),
    in_code(
        "a restoration whose commit is lost counts",
        "platform/evidence/events.py",
        "[Event(kind=LOST, dataset=dataset, table_version=lost), *back]",
        "back",
        f"{DAMAGE}::test_an_execution_or_a_restoration_whose_commit_is_lost_has_not_happened",
    ),
    in_code(
        "a member's log is not looked at",
        "platform/evidence/repair.py",
        "    if found := _of_the_log(log, member.version):\n",
        "    if found := list[Damage]():\n",
        f"{DAMAGE}::test_a_member_whose_log_is_damaged_costs_its_weeks_and_no_other_one",
    ),
    in_code(
        "of a frozen year a lost week is refused",
        CLEANER,
        "_refuse_frozen(seen, tuple(published), target.contract)",
        "_refuse_frozen(seen, keys, target.contract)",
        "tests/laws/test_lost_files.py::test_what_is_frozen_and_whole_stays_so_when_another_week_of_its_year_is_lost",
    ),
    in_code(
        "a constraint that was dropped stays dropped",
        "platform/patterns/storage/tables.py",
        "if known.get(CONTRACT) == contract.fingerprint and not absent:",
        "if known.get(CONTRACT) == contract.fingerprint:",
        "tests/quality/test_constraints_enforcer.py::test_a_dropped_constraint_is_there_again_before_the_next_write",
    ),
    in_code(
        "consumers see what is personal",
        "platform/patterns/data_value/metadata_decorator.py",
        "if column.classification is not Classification.PERSONAL\n",
        "if True\n",
        "tests/data_value/test_metadata_decorator.py::test_a_personal_column_is_hidden_though_it_is_a_key",
    ),
)
