"""What the streams beside that of the visits share: visit events of landed lines, rows that came too late for a state,
and the publication of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from assets.transforms import visit_events
from assets.transforms.visit_times import hour_of, start_of
from blogdata.lake.commit import Account
from blogdata.orchestration.stream import MicroBatch
from blogdata.patterns.error_management.streamed_files import left_out_notes
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.ingestion import landed_lines
from blogdata.publish.changes import READ, AppendBatch
from blogdata.publish.contract import Contract
from quality.contracts.live import LATE

_JSON = frozenset({visit_events.JSON})
_FOLDER = r"^[^/]*/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/"


def events(lines: DataFrame) -> DataFrame:
    """Read the visit events of landed lines, as :func:`assets.transforms.visit_events.parse` does."""
    return visit_events.parse(
        visit_events.judge(in_an_hour(lines).withColumn("format", F.lit(visit_events.JSON)), formats=_JSON), _JSON
    )


def in_an_hour(lines: DataFrame) -> DataFrame:
    """Add the hour of arrival; files in folders whose names are no hour are left out, and reported.

    Args:
        lines: source_file STRING, and anything else.
    """
    named = F.col("source_file").rlike(_FOLDER) & start_of(F.col("arrival_hour")).isNotNull()
    return with_hour(lines).where(named)


def with_hour(lines: DataFrame) -> DataFrame:
    """Add the hour of arrival of lines of which each lies in one.

    Args:
        lines: source_file STRING, and anything else.
    """
    return lines.withColumn(
        "arrival_hour", F.concat_ws("T", *(F.regexp_extract("source_file", _FOLDER, part) for part in (1, 2)))
    )


def late(batch: MicroBatch, sides: Sequence[tuple[Callable[[DataFrame], DataFrame], str]]) -> Counter[str]:
    """Count the rows of the batch's files that were behind the watermark, by hour of their time."""
    marks = {planned.number: planned.watermark for planned in batch.checkpoint.batches()}
    # Those are late that the batch before had no place for any more.
    mark = marks.get(batch.number - 1)
    found = Counter[str]()
    if mark is None:
        return found
    place = batch.place
    for source, (read, time) in zip((batch.source, *batch.others), sides, strict=True):
        rows = read(landed_lines.read(batch.spark, place.landing, _paths(batch, source.table), place.bounds))
        behind: Column = F.col(time) <= F.lit(mark)
        counts = rows.where(behind).groupBy(hour_of(F.col(time)).alias("hour")).count().collect()
        found.update({row["hour"]: int(row["count"]) for row in counts})
    return found


def publish(
    batch: MicroBatch,
    verdicts: DataFrame,
    contract: Contract,
    accounts: Mapping[str, Account],
    *,
    drop: Sequence[str] = (),
    inputs: Mapping[str, int] | None = None,
) -> None:
    """Publish the rows of a batch that are the first of their kind; the accounts tell the others.

    Args:
        verdicts: Its rows, with verdict STRING.

    Raises:
        PlatformError: As raised by `publish`.
    """
    if not accounts:
        return
    first = verdicts.where(F.col("verdict") == Verdict.FIRST.value).drop("verdict", *drop)
    batch.append(
        first.withColumn("batch", F.lit(f"{batch.writer}/{batch.number}")),
        contract,
        AppendBatch(
            stream=batch.writer,
            batch=batch.number,
            turn=None,
            notes={READ: f"landing.{batch.source.table}", **left_out_notes(batch.files)},
        ),
        accounts=accounts,
        inputs=inputs,
    )


def published(batch: MicroBatch, contract: Contract) -> DataFrame:
    """Read what is published of a dataset; nothing if it has no table yet."""
    found = newest(batch, contract.dataset)
    return found[0] if found else batch.spark.createDataFrame([], contract.ddl)


def newest(batch: MicroBatch, dataset: str) -> tuple[DataFrame, int] | None:
    """Read what is published of a dataset, with the version of its table; None if it has no table yet."""
    table = batch.place.lake.caught_up(dataset)
    if table is None:
        return None
    return batch.place.lake.read(batch.spark, dataset, table.version()), table.version()


def accounts(by_verdict: Iterable[Row], late: Mapping[str, int] | None = None) -> dict[str, Account]:
    """Account for the rows of a batch: by hour all of them, and those that are not published.

    Args:
        late: Hour to the rows that came too late for a state; None: there is no state.
    """
    left_out = (Verdict.DUPLICATE.value, Verdict.CONFLICT.value, *(() if late is None else (LATE,)))
    found = {hour: Counter({LATE: rows}) for hour, rows in (late or {}).items()}
    for row in by_verdict:
        found.setdefault(row["event_hour"], Counter())[row["verdict"]] = int(row["count"])
    return {
        hour: Account(rows_in=rows.total(), reasons={name: rows[name] for name in left_out})
        for hour, rows in sorted(found.items())
    }


def _paths(batch: MicroBatch, table: str) -> list[Path]:
    names = (file.name for file in batch.files if file.hour is not None and file.name.startswith(f"{table}/"))
    return [batch.place.landing / name for name in names]
