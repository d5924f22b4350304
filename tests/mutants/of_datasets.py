"""Defects in the computation of datasets, and in the conditions under which partitions wait."""

from __future__ import annotations

from mutants.mutant import in_code

HELD = "tests/planning/test_held.py"
STALENESS = "platform/blogdata/planning/staleness.py"
REACH = "platform/blogdata/planning/reach.py"
PLANNER = "tests/planning/test_plan_of_a_replay.py"
KEYS = "tests/idempotency/test_keyed_idempotency.py"
DEVICES = "tests/transforms/test_devices.py"
USERS = "tests/transforms/test_users.py"
CHANGES = "tests/transforms/test_user_changes.py"
ANONYMOUS = "tests/security/test_anonymizer.py"
COMPLETE = "tests/orchestration/test_completeness.py"
COMPLETENESS = "platform/blogdata/orchestration/completeness.py"

DATASETS = (
    in_code(
        "a line is as old as the hour it was logged in",
        "assets/transforms/visits_by_inactivity.py",
        'F.when(is_part, part[1]).otherwise(F.col("arrival_hour")).alias("appended")',
        'F.col("arrival_hour").alias("appended")',
        f"{KEYS}::test_lines_of_a_later_log_come_later",
    ),
    in_code(
        "who is delivered later was there since he registered",
        "assets/transforms/users.py",
        'usable & is_delivered & F.col("_is_first") & is_first',
        "usable & is_delivered & is_first",
        f"{USERS}::test_only_first_delivered_users_begin_at_registration",
    ),
    in_code(
        "a full delivery leaves users open that it does not name",
        "assets/transforms/users.py",
        'F.least(F.lead("_instant").over(instants), user_changes.midnight(F.col("_next")))',
        'F.lead("_instant").over(instants)',
        f"{CHANGES}::test_a_change_holds_from_its_time_on_and_closes_nobody_else",
    ),
    in_code(
        "of changes of one instant the name of the file decides",
        "assets/transforms/user_changes.py",
        r'F.regexp_extract("source_file", r"-(\d+)\.", 1).try_cast("BIGINT")',
        'F.col("source_file")',
        f"{CHANGES}::test_merger_of_one_instant_takes_the_change_that_landed_last",
    ),
    in_code(
        "changes before the first full delivery are taken for it",
        "platform/blogdata/planning/full_deliveries.py",
        "for day, entry in deliveries if delivered_rows(entry)",
        "for day, entry in deliveries if usable_rows(entry)",
        f"{PLANNER}::test_changes_of_users_before_the_first_delivery_reach_no_earlier_hours",
    ),
    in_code(
        "a late delivery of users is merged onto later ones",
        "platform/blogdata/planning/continued.py",
        " and all(day > last for day in left)",
        "",
        "tests/planning/test_continued.py",
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
        STALENESS,
        "                lacking.pop(key, None)\n",
        "                pass\n",
        f"{HELD}::test_only_hours_touched_by_bad_arrivals_wait",
    ),
    in_code(
        "what a person has accepted is judged again",
        "platform/blogdata/planning/held.py",
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
    in_code(
        "a week that waits for its hours is computed with the first",
        "platform/blogdata/planning/complete.py",
        "or all(hour in hours",
        "or any(hour in hours",
        "tests/planning/test_complete.py::test_a_week_waits_for_its_last_hour",
    ),
    in_code(
        "facts about what is unknown keep their own key",
        "platform/blogdata/patterns/storage/normalizer.py",
        "F.when(F.col(known), F.col(name)).otherwise(F.lit(unknown))",
        "F.col(name)",
        "tests/storage/test_normalizer.py::test_facts_about_what_is_unknown_are_not_dropped",
    ),
    in_code(
        "a big table loses the facts that a dimension lacks",
        "platform/blogdata/patterns/storage/denormalizer.py",
        'how="left"',
        'how="inner"',
        "tests/storage/test_denormalizer.py::test_dimensions_are_sent_to_the_facts_and_no_fact_is_lost",
    ),
    in_code(
        "a big table keeps the old name of a device",
        "platform/blogdata/planning/shown.py",
        "for key, rows in shown.items() if rows}",
        "for key, rows in shown.items() if not rows}",
        "tests/planning/test_shown.py::test_a_renamed_device_makes_the_weeks_stale_that_show_it",
    ),
    in_code(
        "a group of too few persons is shared",
        "platform/blogdata/patterns/security/anonymizer.py",
        ".over(Window.partitionBy(*promised.alike)) >= promised.k",
        ".over(Window.partitionBy(*promised.alike)) >= 1",
        f"{ANONYMOUS}::test_k_and_l_hold_by_the_independent_measure",
    ),
    in_code(
        "the number of a person is the same in all groups",
        "platform/blogdata/patterns/security/anonymizer.py",
        'F.row_number().over(together.orderBy("_turn", "_draw"))',
        'F.abs(F.hash("_draw"))',
        f"{ANONYMOUS}::test_a_number_for_each_visitor_would_lead_to_them",
    ),
    in_code(
        "an audit that forbids is lifted by a person",
        "platform/blogdata/publish/audit.py",
        "if audit.failed is not Failed.FORBIDS}",
        "}",
        f"{ANONYMOUS}::test_rows_that_are_not_anonymous_are_refused_and_nobody_can_lift_it",
    ),
    in_code(
        "a private page view has the token of its visit's other page views",
        "assets/transforms/weekly_visits.py",
        'F.concat_ws("\\n", "visit_id", F.col("keep_private").cast("string"))',
        'F.col("visit_id")',
        "tests/security/test_pseudo_anonymizer.py::test_a_private_page_view_leads_to_nobody_by_its_visit",
    ),
    in_code(
        "an id of a session is a hash of its visitor",
        "platform/blogdata/patterns/data_value/incremental_sessionizer.py",
        "return keyed_idempotency.key(*first)",
        "return keyed_idempotency.key(F.col(spec.visitor), *first)",
        "tests/security/test_ids_of_sessions.py::test_no_user_is_found_by_trying_all_against_an_id",
    ),
    in_code(
        "a hash of ids has no key",
        "platform/blogdata/patterns/security/pseudo_anonymizer.py",
        "return F.sha2(F.concat(outer, digest), 256)",
        "return F.sha2(message, 256)",
        "tests/security/test_pseudo_anonymizer.py::test_a_dictionary_finds_every_unkeyed_hash_and_no_token",
    ),
)
