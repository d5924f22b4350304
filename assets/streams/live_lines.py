"""What the streams share: judged lines, rows that came too late for a state, and the publication of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from assets.transforms import visit_events
from assets.transforms.visit_times import hour_of, start_of
from blogdata.lake.commit import Account
from blogdata.landing import lines
from blogdata.landing.lines import Unread
from blogdata.orchestration.stream import MicroBatch
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.publish.contract import Contract
from quality.contracts.live import LATE

JSON = frozenset({visit_events.JSON})
_FOLDER = r"^[^/]*/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/"


def judged(lines: DataFrame) -> DataFrame:
    """Judge landed lines of visits, as :func:`assets.transforms.visit_events.judge` does."""
    return visit_events.judge(in_an_hour(lines).withColumn("format", F.lit(visit_events.JSON)), formats=JSON)


def events(lines: DataFrame) -> DataFrame:
    """Read the visit events of landed lines, as :func:`assets.transforms.visit_events.parse` does."""
    return visit_events.parse(judged(lines), JSON)


def in_an_hour(lines: DataFrame) -> DataFrame:
    """Add the hour of arrival; files in folders whose names are no hour are left out, and reported."""
    hour = F.concat_ws("T", *(F.regexp_extract("source_file", _FOLDER, part) for part in (1, 2)))
    named = F.col("source_file").rlike(_FOLDER) & start_of(F.col("arrival_hour")).isNotNull()
    return lines.withColumn("arrival_hour", hour).where(named)


Side = tuple[Callable[[DataFrame], DataFrame], str, timedelta]
"""How the rows of a source are read from lines, their time, and how long after it they count."""


def late(batch: MicroBatch, sides: Sequence[Side]) -> Counter[str]:
    """Count the rows of the batch's files that were behind the watermark, by hour of their time."""
    marks = {planned.number: planned.watermark for planned in batch.checkpoint.batches()}
    # Those are late that the batch before had no place for any more.
    mark = marks.get(batch.number - 1)
    found = Counter[str]()
    if mark is None:
        return found
    place = batch.place
    for source, (read, time, counts_for) in zip(batch.sources, sides, strict=True):
        paths: dict[str, list[Path]] = {}
        for file in batch.files:
            if file.hour is not None and file.name.startswith(f"{source.table}/"):
                paths.setdefault(file.hour, []).append(place.landing / file.name)
        rows = read(lines.read(batch.spark, place.landing, paths, Unread(), place.bounds))
        behind = rows.where(F.col(time) <= F.lit(mark - counts_for))
        counts = behind.groupBy(hour_of(F.col(time)).alias("hour")).count().collect()
        found.update({row["hour"]: int(row["count"]) for row in counts})
    return found


def publish(
    batch: MicroBatch, verdicts: DataFrame, contract: Contract, accounts: Mapping[str, Account], *, turn: int
) -> None:
    """Publish the rows of a batch that are the first of their kind; the accounts tell the others."""
    if accounts:
        first = verdicts.where(F.col("verdict") == Verdict.FIRST.value)
        batch.append(first, contract, accounts=accounts, turn=turn)


def published(batch: MicroBatch, contract: Contract) -> DataFrame:
    """Read what is published of a dataset; nothing if it has no table yet."""
    table = batch.place.lake.caught_up(contract.dataset)
    if table is None:
        return batch.spark.createDataFrame([], contract.ddl)
    return batch.place.lake.read(batch.spark, contract.dataset, table.version())


def accounts(by_verdict: Iterable[Row], late: Mapping[str, int]) -> dict[str, Account]:
    """Account for the rows of a batch by hour; `late` has the rows that came too late for a state."""
    found = {hour: Counter({LATE: rows}) for hour, rows in late.items()}
    for row in by_verdict:
        found.setdefault(row["event_hour"], Counter())[row["verdict"]] += int(row["count"])
    left_out = (Verdict.DUPLICATE.value, Verdict.CONFLICT.value, LATE)
    return {
        hour: Account(rows_in=rows.total(), reasons={name: rows[name] for name in left_out})
        for hour, rows in sorted(found.items())
    }
