"""Defects of error management, and of tables that appear together."""

from __future__ import annotations

from mutants.mutant import in_code, in_engine, in_error_management

COMPANIONS = "platform/blogdata/lake/companions.py"
JOINER = "platform/blogdata/patterns/data_value/dynamic_joiner.py"
SESSIONIZER = "platform/blogdata/patterns/data_value/stateful_sessionizer.py"
SINK = "platform/blogdata/patterns/idempotency/transactional_sink.py"
TOGETHER = "tests/idempotency/test_transactional_writer.py"
OBSERVED = "platform/blogdata/patterns/observability"
SERVED = "tests/idempotency/test_transactional_sink.py"
LANDED_CHANGE = "tests/attacks/test_landed_files_change.py"

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
        "platform/blogdata/patterns/error_management/checkpoint_files.py",
        "if mismatch(file) is not None",
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
        "platform/blogdata/orchestration/replays.py",
        "version >= least.get(name, -1)",
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
        "platform/blogdata/patterns/ingestion/readiness_marker.py",
        "if file.came_ns > flag.came_ns)",
        "if file.came_ns < flag.came_ns)",
        "tests/ingestion/test_readiness_marker.py",
    ),
    in_code(
        "a file that was removed is no loss",
        "platform/blogdata/patterns/ingestion/vanished_lines.py",
        "if landed.get(file, 0) < lines and",
        "if landed.get(file, lines) < lines and",
        LANDED_CHANGE,
    ),
    in_code(
        "a published line that is in a file twice makes up for a lost one",
        "platform/blogdata/patterns/ingestion/vanished_lines.py",
        "            free[hash(line.raw)] -= 1",
        "            pass",
        LANDED_CHANGE,
    ),
    in_code(
        "a rewrite with the same size and time is not noticed",
        "platform/blogdata/patterns/ingestion/published_files.py",
        "return seen.changes != partition.changes",
        "return False",
        LANDED_CHANGE,
    ),
    in_code(
        "what was published alone comes again in a pair",
        "assets/transforms/live_ads.py",
        'other = F.col("_alone") != F.col(partner).isNull()',
        "other = F.lit(False)",
        "tests/lineage/test_live_ads.py",
    ),
    in_code(
        "a link is followed out of the landing zone",
        "platform/blogdata/patterns/ingestion/landed_links.py",
        "    if not _within(target, zone):",
        "    if False:",
        "tests/ingestion/test_landed_links.py",
    ),
    in_engine(
        "a stream reads through a link that leads out of the landing zone",
        "Outside.java",
        "|| !real.startsWith(Path.of(folder).toRealPath());",
        ";",
        "tests/ingestion/test_landed_lines.py::test_a_link_out_of_the_root_is_refused",
    ),
    in_engine(
        "the files of an hour are only counted together",
        "Audit.java",
        "Set<String> all = new TreeSet<>(expected.keySet());\n          all.addAll(there.keySet());",
        "Set<String> all = new TreeSet<>();",
        "tests/attacks/test_landed_formats.py::test_a_file_read_twice_in_place_of_another_is_refused_and_both_are_named",
    ),
    in_engine(
        "a byte order mark is part of the first line",
        "LineReader.java",
        "      take(MARK.length);",
        "      take(0);",
        "tests/attacks/test_landed_formats.py",
    ),
    in_engine(
        "a line of any length is read",
        "LineReader.java",
        "if (length > longest) {",
        "if (length < 0) {",
        "tests/attacks/test_landed_formats.py::test_neither_reader_holds_more_than_a_line_within_the_bounds",
    ),
    in_code(
        "what follows the compressed data is ignored",
        "platform/blogdata/patterns/ingestion/landed_formats.py",
        "                following = self._current.unused_data or self._stored.read(BLOCK)",
        '                following = b""',
        "tests/attacks/test_landed_formats.py::test_damage_is_noticed_to_the_last_byte",
    ),
    in_code(
        "an entry that is neither file nor folder is passed over",
        "platform/blogdata/patterns/ingestion/landed_entries.py",
        '        yield Obstacle(path=entry.path, why="is neither a file nor a folder")',
        "        return",
        "tests/attacks/test_landed_formats.py",
    ),
    in_code(
        "an hour without a flag is complete while it is written to",
        "platform/blogdata/patterns/ingestion/readiness_marker.py",
        "lacks = Lack.QUIET if came > quiet_since else None",
        "lacks = None",
        "tests/ingestion/test_readiness_marker.py",
    ),
    in_code(
        "an hour that never comes is not missed",
        "platform/blogdata/patterns/ingestion/readiness_marker.py",
        "        if start_of(after, grain) - start_of(before, grain) <= LONGEST_GAP + grain.length:",
        "        if False:",
        "tests/ingestion/test_readiness_marker.py",
    ),
    # Tables that appear together.
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
    # Data value.
    in_code(
        "what has no partner is lost",
        JOINER,
        '"full_outer"',
        '"inner"',
        "tests/data_value/test_dynamic_joiner.py",
    ),
    in_code(
        "a display after the event is its own",
        JOINER,
        "& (after >= before) & ",
        "& ",
        "tests/data_value/test_dynamic_joiner.py",
    ),
    in_code(
        "a session is over while rows may still belong to it",
        SESSIONIZER,
        "over: int = session[-1][_MICROS]",
        "over: int = session[0][_MICROS]",
        "tests/data_value/test_stateful_sessionizer.py::test_expirations_follow_the_newest_row",
    ),
    in_code(
        "a row that is received twice is two page views",
        SESSIONIZER,
        "row if other is None else _first(other, row, spec)",
        "row",
        "tests/data_value/test_stateful_sessionizer.py::test_a_repeated_row_stays_once_and_is_counted",
    ),
    in_code(
        "an hour does not wait for the events of the next one",
        "platform/blogdata/planning/around.py",
        "self.grain.length + self.after - timedelta.resolution",
        "self.grain.length - timedelta.resolution",
        "tests/planning/test_around.py",
    ),
    in_code(
        "lines of one event that name two ads are two events",
        "assets/transforms/live_ads.py",
        'payload=F.col("ad_id"),',
        "payload=F.lit(0),",
        "tests/lineage/test_live_ads.py",
    ),
    in_code(
        "a streamed event whose copy came in an earlier batch is published again",
        "assets/transforms/live_enriched.py",
        "live_lines.published(batch, ENRICHED_LIVE).where(",
        "live_lines.published(batch, ENRICHED_LIVE).limit(0).where(",
        "tests/lineage/test_truth.py::test_streamed_rows_are_joined_like_those_of_the_batch",
    ),
    # Observability.
    in_code(
        "the same rows published again are new data",
        f"{OBSERVED}/flow_interruption_detector.py",
        "changed = entry.appended or entry.rows_in != rows.get(entry.partition)",
        "changed = True",
        "tests/observability/test_flow_interruption_detector.py",
    ),
    in_code(
        "growth is not taken into account",
        f"{OBSERVED}/skew_detector.py",
        "return [self._rows[key] * self._growth(start.date(), ago) for ago, key in keys if key in self._rows]",
        "return [float(self._rows[key]) for ago, key in keys if key in self._rows]",
        "tests/observability/test_skew_detector.py",
    ),
    in_code(
        "a slow partition is averaged away",
        f"{OBSERVED}/lag_detector.py",
        "longest=waits[-1] if waits else 0.0",
        "longest=sum(waits) / len(waits) if waits else 0.0",
        "tests/observability/test_lag_detector.py",
    ),
    in_code(
        "a job is blamed for its late input",
        f"{OBSERVED}/sla_misses_detector.py",
        "timedelta() if one.input_at is None else (one.published_at or now) - max(one.input_at, one.ended)",
        "(one.published_at or now) - one.ended",
        "tests/observability/test_sla_misses_detector.py",
    ),
    in_code(
        "a stream is blamed for its late file",
        f"{OBSERVED}/sla_misses_detector.py",
        "could_have = within is None and one.input_at is not None",
        "could_have = one.input_at is not None",
        "tests/observability/test_sla_misses_detector.py",
    ),
)
