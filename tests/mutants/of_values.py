"""Defects of enriching, wrapping, aggregating and delivering events, and of their visibility."""

from __future__ import annotations

from mutants.mutant import in_code

LIBRARY = "platform/blogdata/patterns/data_value"
PLACES = "assets/transforms/place_answers.py"
ENRICHMENT = "assets/transforms/enrichment.py"
LOCATIONS = "platform/blogdata/services/locations.py"
OUTBOX = f"{LIBRARY}/outbox.py"
ENRICHED = "tests/transforms/test_enrichment.py"
STEPS = "tests/data_flow/test_local_sequencer.py"
SESSIONS = "tests/data_value/test_incremental_sessionizer.py"
SENT = "tests/data_value/test_outbox.py"
BINS = "tests/data_value/test_bin_pack_orderer.py"
FIFO = "tests/data_value/test_fifo_orderer.py"
SEEN = "tests/data_value/test_metadata_decorator.py"

VALUES = (
    # Enrichment.
    in_code(
        "a visit knows only the newest version of its user",
        ENRICHMENT,
        'versions.select("user_id", ',
        'versions.where("valid_to IS NULL").select("user_id", ',
        f"{ENRICHED}::test_users_of_figure_5_1_are_joined_as_of_the_visit",
    ),
    in_code(
        "a visit on the boundary of two versions is two visits",
        f"{LIBRARY}/static_joiner.py",
        "(moment < F.col(_END))",
        "(moment <= F.col(_END))",
        "tests/data_value/test_static_joiner.py::test_a_boundary_fact_gets_the_version_that_begins",
    ),
    in_code(
        "a service learns the addresses of visitors who asked not to be shared",
        PLACES,
        'may_be_asked = ~F.col("keep_private") if disclosed else F.lit(True)',
        "may_be_asked = F.lit(True)",
        f"{ENRICHED}::test_a_service_does_not_learn_of_private_visitors",
    ),
    in_code(
        "a private visit shows the place that a service told of another one",
        ENRICHMENT,
        'used = ~F.col("keep_private") | F.coalesce(F.col("told_by") == HERE, F.lit(False))',
        "used = F.lit(True)",
        f"{ENRICHED}::test_a_private_visit_has_no_place_that_a_service_told",
    ),
    in_code(
        "an answer that has expired holds for ever",
        PLACES,
        ' | (last["valid_until"] <= F.col("seen"))',
        "",
        f"{ENRICHED}::test_an_address_is_asked_for_once_while_its_answer_holds",
    ),
    in_code(
        "an answer that comes expired is paid for with every visit",
        PLACES,
        "until = max(until, max(now, question.seen, question.valid_from) + _AT_LEAST)",
        "pass",
        f"{ENRICHED}::test_an_address_is_asked_for_once_while_its_answer_holds",
    ),
    in_code(
        "the geolocation service is asked as fast as it answers",
        LOCATIONS,
        "self._next = max(now, self._next) + 1 / self.rate",
        "self._next = now",
        f"{STEPS}::test_requests_keep_to_the_rate_and_the_wanted_pause",
    ),
    in_code(
        "the pause that the geolocation service wants is not kept",
        LOCATIONS,
        "time.sleep(max(wanted, min(pause, _LONGEST_PAUSE)))",
        "time.sleep(min(pause, _LONGEST_PAUSE))",
        f"{STEPS}::test_requests_keep_to_the_rate_and_the_wanted_pause",
    ),
    in_code(
        "answers are published without waiting for the step that asks",
        "platform/blogdata/orchestration/refresh.py",
        "above.append(_paid_step",
        "above and (_paid_step",
        f"{STEPS}::test_a_service_is_asked_in_a_step_before_the_one_that_publishes",
    ),
    in_code(
        "nobody is told that the geolocation service refuses the key",
        "platform/blogdata/orchestration/refresh.py",
        "self._request.leave_unpaid(task.main, error)",
        "pass",
        "tests/lineage/test_canary_secrets.py::test_the_values_of_secrets_are_nowhere_but_in_their_store",
    ),
    in_code(
        "answers are stored only by who publishes them",
        "platform/blogdata/patterns/data_flow/local_sequencer.py",
        "            journal.append(found)\n",
        "",
        f"{STEPS}::test_later_failure_does_not_ask_again",
    ),
    # Visibility.
    in_code(
        "the login of a visitor is for everybody",
        "quality/contracts/columns.py",
        'Column(name="login", type="STRING", subject=USER_DIRECT, description="Login, when connected")',
        'Column(name="login", type="STRING", description="Login, when connected")',
        f"{SEEN}::test_no_view_of_the_lake_shows_a_person_or_a_line",
    ),
    in_code(
        "a partner gets where visitors came from",
        "quality/contracts/serving.py",
        '"ad_id", "browser", "device_type")',
        '"ad_id", "browser", "referral")',
        f"{SEEN}::test_a_partner_gets_only_what_a_consumer_sees",
    ),
    in_code(
        "consumers build on sessions that are not over",
        "quality/contracts/sessions.py",
        "    shared=False,\n",
        "",
        f"{SEEN}::test_pending_sessions_have_no_view",
    ),
    in_code(
        "a computed value takes the place of the raw one",
        f"{LIBRARY}/wrapper.py",
        "sorted(set(computed) & set(taken))",
        "[]",
        "tests/data_value/test_wrapper.py::test_a_computed_column_cannot_replace_a_raw_one",
    ),
    # Aggregates and sessions.
    in_code(
        "a visitor counts once for every page view",
        f"{LIBRARY}/distributed_aggregator.py",
        "return F.count_distinct(column)",
        "return F.count(column)",
        "tests/data_value/test_distributed_aggregator.py::test_grouped_results_equal_brute_force_with_null_groups",
    ),
    in_code(
        "a row of one grouping set counts as one of another",
        f"{LIBRARY}/distributed_aggregator.py",
        "enumerate(reversed(by)) if column not in columns",
        "enumerate(by) if column not in columns",
        "tests/data_value/test_distributed_aggregator.py"
        "::test_sets_of_one_pass_equal_brute_force_and_do_not_mix_with_nulls",
    ),
    in_code(
        "the page views of a page are counted among those of the referrers",
        "assets/transforms/daily_figures.py",
        'F.col(distributed_aggregator.SET).alias("metric")',
        'F.lit("top_page").alias("metric")',
        "tests/transforms/test_daily_figures.py",
    ),
    in_code(
        "the cube counts visits of all countries as one",
        "assets/transforms/cubes.py",
        "(period, *CUBE_KEY)",
        "(period, *CUBE_KEY[:-1])",
        "tests/transforms/test_cubes.py::test_the_cube_equals_a_plain_count",
    ),
    in_code(
        "countries of few visitors stand in the cube for everybody",
        "quality/contracts/page_views.py",
        "    PLACE[0],\n",
        '    CUBE_DIMENSIONS[0],\n    name="country",\n',
        "tests/security/test_countries_of_few.py::test_the_cube_hides_the_countries_and_no_page_view",
    ),
    in_code(
        "rows are trusted to lie together",
        f"{LIBRARY}/local_aggregator.py",
        "if len(columns) != 1 or columns[0] not in by:",
        "if not columns:",
        "tests/data_value/test_local_aggregator.py::test_rows_that_lie_apart_are_refused",
    ),
    in_code(
        "a session forgets that a page view of it is private",
        f"{LIBRARY}/incremental_sessionizer.py",
        "F.max(name).over(so_far) for name in spec.ever",
        "F.min(name).over(so_far) for name in spec.ever",
        f"{SESSIONS}::test_a_session_goes_on_in_the_next_partitions",
    ),
    # Ordered delivery.
    in_code(
        "what may not be shared is sent to the partner",
        "platform/blogdata/orchestration/partner.py",
        "if row[write.unless] is False:",
        "if write.unless:",
        "tests/orchestration/test_feeds.py::test_the_partner_receives_what_is_published",
    ),
    in_code(
        "an event that was withdrawn before it was sent is sent",
        OUTBOX,
        """connection.executemany("DELETE FROM records WHERE id = ? AND state = 'waiting'", gone)""",
        "pass",
        f"{SENT}::test_private_rows_are_never_sent",
    ),
    in_code(
        "a second correction of a visitor is taken for a new event",
        OUTBOX,
        "max(records.at, coalesce(keys.at, records.at))",
        "records.at",
        f"{SENT}::test_late_rows_are_sent_as_corrections",
    ),
    in_code(
        "an answer that names no record means that all were taken",
        f"{LIBRARY}/http_target.py",
        "if not failed.keys() <= set(range(count)):",
        "if count < 0:",
        f"{BINS}::test_an_answer_that_makes_no_sense_settles_nothing",
    ),
    in_code(
        "a repeat that is turned away is taken for one that never arrived",
        f"{LIBRARY}/ordered_delivery.py",
        "failed = _settled(request, journal, target, patience, uncertain=True)",
        "failed = _settled(request, journal, target, patience, uncertain=False)",
        f"{SENT}::test_a_repeat_that_is_turned_away_stays_open",
    ),
    in_code(
        "the answers of other lanes are lost with a refusal",
        f"{LIBRARY}/ordered_delivery.py",
        "                    fault = error\n                    continue",
        "                    raise",
        f"{FIFO}::test_a_refusal_in_one_lane_keeps_the_answers_of_others",
    ),
    in_code(
        "a bin is tried for ever for a record that is never taken",
        f"{LIBRARY}/bin_pack_orderer.py",
        "if queue and self._fails[record.id] < MOST_TRIES:",
        "if queue:",
        f"{BINS}::test_a_record_that_is_never_taken_holds_its_key_only",
    ),
    in_code(
        "a lane is tried for ever for a record that is never taken",
        f"{LIBRARY}/fifo_orderer.py",
        " and self._fails[lane[0].id] < MOST_TRIES",
        "",
        f"{FIFO}::test_a_record_that_is_never_taken_ends_its_lane",
    ),
    in_code(
        "a bulk request has a key twice",
        f"{LIBRARY}/fifo_orderer.py",
        " or record.key in keys",
        "",
        f"{FIFO}::test_a_bulk_request_ends_before_a_key_repeats",
    ),
)
