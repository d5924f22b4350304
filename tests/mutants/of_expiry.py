"""Defects of how long rows are kept."""

from __future__ import annotations

from mutants.mutant import in_code

PLANS = "tests/planning/test_expiry.py"
EXPIRY = "platform/blogdata/planning/expiry.py"
LANDINGS = "platform/blogdata/planning/expired_landings.py"

EXPIRED = (
    in_code(
        "a partition that has expired is computed again",
        "platform/blogdata/planning/staleness.py",
        "            del lacking[key]\n        return lacking",
        "            pass\n        return lacking",
        f"{PLANS}::test_a_late_row_of_an_expired_hour_makes_nothing_stale_and_stays_where_it_arrived",
    ),
    in_code(
        "an hour is computed from what is left of what it reads",
        EXPIRY,
        "readers = _readers(look, edge, read, gone) if gone else {}",
        "readers = dict[str, str]()",
        f"{PLANS}::test_an_hour_whose_table_keeps_longer_is_not_computed_from_what_is_left",
        f"{PLANS}::test_a_day_of_expired_hours_is_not_computed_again",
    ),
    in_code(
        "the hour after an expired one continues from nothing",
        EXPIRY,
        "return {following(key, grain): key for key in gone}",
        "return {}",
        f"{PLANS}::test_the_hour_after_an_expired_one_is_not_computed_without_what_was_pending",
    ),
    in_code(
        "a replay computes days of expired hours",
        "platform/blogdata/planning/plan.py",
        "                del below[key]\n",
        "                pass\n",
        f"{PLANS}::test_a_day_of_expired_hours_is_not_computed_again",
    ),
    in_code(
        "rows that expired hide rows that were lost",
        "platform/blogdata/evidence/ledger.py",
        "if rows_there != entry.rows_kept:",
        "if rows_there != entry.rows_kept and rows_there:",
        f"{PLANS}::test_the_ledger_counts_what_expired_and_finds_what_is_lost_beside_it",
    ),
    in_code(
        "what was published after it expired counts as expired",
        "platform/blogdata/evidence/lines.py",
        """if partition in lines and lines[partition].version < row["table_version"]:""",
        "if partition in lines:",
        f"{PLANS}::test_what_is_published_again_is_there_again",
    ),
    in_code(
        "rows leave that were not counted",
        "platform/blogdata/lake/expiry.py",
        "    except CommitFailedError:\n        return False\n",
        "    except CommitFailedError:\n        table.update_incremental()\n"
        "        return _committed(lake, dataset, table, column, keys, info)\n",
        f"{PLANS}::test_another_commit_in_between_keeps_its_rows",
    ),
    in_code(
        "landed files go before a stream has read them",
        LANDINGS,
        "        and not any(partition.folder in file.parents for file in unread)\n",
        "",
        f"{PLANS}::test_files_that_a_stream_has_not_read_yet_stay",
    ),
    in_code(
        "landed files go that were never taken in",
        LANDINGS,
        " and published_files.is_published(partition, entry.landed)",
        "",
        f"{PLANS}::test_files_that_landed_again_after_they_expired_stay_and_are_not_taken_in",
    ),
    in_code(
        "companions keep what their main dataset loses",
        "platform/blogdata/lake/companions.py",
        "return parse(metadata) or parse_expiry(metadata)",
        "return parse(metadata)",
        "tests/lake/test_expiry.py::test_companions_follow_and_lose_the_same_partitions",
    ),
)
