import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blogdata.deliver.page_files import CSV, PARQUET
from blogdata.patterns.data_flow.parallel_split import Writer
from blogdata.runs.lake_resource import LakeResource
from patterns.page_file_runs import DAY, PAGES, Files, fault, metadata
from sensors.refresh import page_files_due
from sensors.run_requests import MOST_AT_ONCE

NEXT = "2026-01-06"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Files(tmp_path, instance)


def checks(run: dg.ExecuteInProcessResult) -> list[tuple[bool, str | None]]:
    return [(check.passed, check.description) for check in run.get_asset_check_evaluations()]


def test_one_read_feeds_both_writers_and_rounded_percents_agree(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []
    batches = LakeResource.batches

    def counted(access: LakeResource, *of: Any) -> Any:
        reads.append(of)
        return batches(access, *of)

    monkeypatch.setattr(LakeResource, "batches", counted)
    files.publish(DAY)
    run = files.run(DAY)
    assert (len(reads), checks(run)) == (1, [(True, None)])
    result = metadata(run)
    assert (result["dagster/partition_row_count"], result["equal"], result["examples"]) == (len(PAGES), len(PAGES), [])
    with files.file(CSV).open(encoding="utf-8", newline="") as text:
        head, *rows = csv.reader(text, delimiter=";")
    assert head == ["Seite", "Aufrufe", "Besuche", "Besucher", "Anteil in Prozent"]
    assert [row[0] for row in rows] == list(reversed(PAGES))
    assert sorted(pq.read_table(files.file(PARQUET))["page"].to_pylist()) == sorted(PAGES)


@pytest.mark.parametrize(("failing", "other"), [(CSV, PARQUET), (PARQUET, CSV)], ids=["csv", "parquet"])
def test_a_failed_writer_stops_no_other_and_its_readers_keep_the_old_file(
    files: Files, failing: Writer, other: Writer
) -> None:
    files.publish(DAY)
    assert files.run(DAY).success
    before = {writer: files.file(writer).read_bytes() for writer in (failing, other)}
    files.publish(DAY, views=3)
    partial = files.file(failing).with_name(f".{failing.file}.partial")
    partial.mkdir()
    error = fault(files.run(DAY))
    assert (f"the {failing.name} file cannot be written" in error, f"the {other.name} file" in error) == (True, False)
    assert files.file(failing).read_bytes() == before[failing]
    assert files.file(other).read_bytes() != before[other]
    assert files.due() == [DAY], "nothing of it was compared"
    partial.rmdir()
    assert files.run(DAY).success
    assert (files.receipt()["equal"], files.due()) == (len(PAGES), [])


def test_a_day_that_was_published_while_its_files_were_written_is_due(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.publish(DAY)
    batches = LakeResource.batches

    def overtaken(access: LakeResource, *of: Any) -> Any:
        monkeypatch.setattr(LakeResource, "batches", batches)
        files.publish(DAY, views=3)
        return batches(access, *of)

    monkeypatch.setattr(LakeResource, "batches", overtaken)
    assert files.run(DAY).success
    assert files.due() == [DAY]


def test_what_was_cut_off_or_removed_or_written_from_another_table_is_due(files: Files) -> None:
    """A process that dies before the receipt leaves none, or an earlier one."""
    files.publish(DAY)
    assert files.run(DAY).success
    receipt = files.folder / "receipts" / f"date={DAY}.json"
    for other in ({"version": "another0-0"}, {"writers": ["csv"]}):
        receipt.write_text(json.dumps({**files.receipt(), **other}))
        assert files.due() == [DAY]
    receipt.unlink()
    assert files.due() == [DAY]
    assert (files.run(DAY).success, files.due()) == (True, [])
    files.file(PARQUET).unlink()
    assert files.due() == [DAY]


def test_a_wrong_writer_is_found_by_day(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer loses a page, doubles another, and counts a third one too high."""
    honest = CSV.encode

    def wrong(rows: pa.Table) -> bytes:
        text = honest(rows).decode().replace("/2022/01/how-spark-works;2;", "/2022/01/how-spark-works;7;")
        head, *lines, end = text.split("\r\n")
        lines = [line for line in lines if line[:2] != "/;"]
        return "\r\n".join([head, *lines, lines[0], end]).encode()

    files.publish(DAY, NEXT)
    monkeypatch.setitem(vars(CSV), "encode", wrong)
    run = files.run(DAY)
    assert run.success, "a difference is reported; it stops no writer"
    assert checks(run) == [(False, "1 of 1 days differ")]
    result = metadata(run)
    assert (result["equal"], result["only_first"], result["only_second"]) == (len(PAGES) - 2, 2, 2)
    changed = "/2022/01/how-spark-works"
    assert [example[:2] for example in result["examples"]] == [["/", 1], [changed, 2], [changed, 7], [PAGES[-1], 5]]
    monkeypatch.setitem(vars(CSV), "encode", honest)
    assert checks(files.run(NEXT)) == [(False, "1 of 2 days differ")], "the warning stays while a day differs"
    assert checks(files.run(DAY)) == [(True, None)]


def test_the_sensor_asks_for_the_newest_days_first(files: Files) -> None:
    days = [f"2026-01-{day:02d}" for day in range(MOST_AT_ONCE + 1, 0, -1)]
    files.publish(*days)
    context = dg.build_sensor_context(
        instance=files.instance, definitions=files.definitions, resources={"lake": files.access}
    )
    requests = page_files_due().evaluate_tick(context).run_requests or ()
    assert [request.partition_key for request in requests] == days[:-1]
