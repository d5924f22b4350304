"""Defects of the stream of access logs, and of the parts that it reads."""

from __future__ import annotations

from mutants.mutant import in_code

STREAMED = (
    in_code(
        "a crawler of an earlier batch of the hour is no crawler of the next one",
        "assets/transforms/live_logs.py",
        "there = batch.source.in_hours(place.landing, by_hour(batch.files))",
        "there = [place.landing / name for name in sorted(names)]",
        "tests/lineage/test_live_logs.py",
    ),
    in_code(
        "a new checkpoint takes in files again",
        "assets/transforms/live_batches.py",
        "_taken_in_before(batch, this, dataset, sizes) if renewed else frozenset()",
        "frozenset()",
        "tests/lineage/test_live_logs.py",
    ),
    in_code(
        "a part of a log grows that a stream has read",
        "platform/blogdata/patterns/ingestion/log_splitter.py",
        "elif size := _begun_by(target, partial):",
        "elif size := 0:",
        "tests/ingestion/test_log_splitter.py",
    ),
    in_code(
        "a stream reads the begin of a line",
        "platform/blogdata/patterns/ingestion/log_splitter.py",
        "self._write(file, survey.complete, survey.size, UNENDED)",
        "self._write(file, survey.complete, survey.size)",
        "tests/ingestion/test_log_splitter.py",
    ),
    in_code(
        "an hour waits when a line has ended whose begin is published",
        "platform/blogdata/patterns/ingestion/vanished_lines.py",
        "name.endswith(UNENDED) or (lines == 1",
        "(lines == 1",
        "tests/ingestion/test_logs_split_again.py",
    ),
    in_code(
        "what is appended to a log within seconds sorts before what was there",
        "platform/blogdata/patterns/ingestion/log_splitter.py",
        "taken_at = max([taken_at, *(",
        "_ = max([taken_at, *(",
        "tests/ingestion/test_logs_split_again.py",
    ),
    in_code(
        "the logs of several servers are one partition",
        "assets/transforms/live_logs.py",
        "if SOURCE not in combined.partitions:",
        "if True:",
        "tests/lineage/test_live_lateness.py",
    ),
)
