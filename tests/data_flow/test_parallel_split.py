"""One read feeds two writers; each may fail without affecting the other, and their files are compared."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import openlineage_events
from assets.serving import page_files as declared
from blogdata.orchestration.split_files import compared
from blogdata.patterns.data_flow.parallel_split import Comparison, SharedRead, compare
from blogdata.patterns.observability.dataset_tracker import track
from data_flow.page_file_runs import DATASET, DAY, PAGES, Files
from quality.contracts import DECLARED
from quality.reported import reported_in

FAILED, SKIPPED = dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.STEP_SKIPPED


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Files(tmp_path, instance)


KILLED_COMPARING = """
import os, signal, sys
from pathlib import Path
import dagster as dg
from blogdata.patterns.data_flow import parallel_split
from data_flow.page_file_runs import DAY, Files
compare = parallel_split.compare
def killed(*of, **named):
    compare(*of, **named)
    os.kill(os.getpid(), signal.SIGKILL)
parallel_split.compare = killed
with dg.DagsterInstance.ephemeral() as instance:
    Files(Path(sys.argv[1]), instance).run(DAY)
"""
"""A program that is killed between the files of a day and the result of their comparison."""


def blocked(files: Files, branch: str) -> Path:
    """Put a folder where a branch writes its file."""
    file = files.file(branch, DAY)
    file.mkdir(parents=True)
    return file


def test_one_read_feeds_both_writers(files: Files) -> None:
    files.publish(DAY)
    run = files.run(DAY)
    assert run.materialized() == {"csv", "parquet", "compared"}
    for branch in ("csv", "parquet"):
        metadata = run.metadata(branch)
        assert (metadata["read_in_this_run"], metadata["dagster/partition_row_count"]) == (1, len(PAGES))
        assert metadata["bytes_shared"] > 0, "the cost of keeping the rows"
    with files.file("csv", DAY).open(encoding="utf-8", newline="") as text:
        rows = list(csv.reader(text, delimiter=";"))
    assert rows[0] == ["Seite", "Aufrufe", "Besuche", "Besucher", "Anteil in Prozent"]
    assert [row[0] for row in rows[1:]] == list(reversed(PAGES))
    typed = pq.read_table(files.file("parquet", DAY))
    assert typed.schema.field("events").type == pa.int64()
    assert sorted(typed["page"].to_pylist()) == sorted(PAGES)
    assert files.due() == {}


def test_the_files_are_in_the_lineage_with_the_version_they_were_written_from(files: Files) -> None:
    """Pattern: Dataset Tracker."""
    files.publish(DAY)
    assert files.run(DAY, "csv").success
    files.publish(DAY, views=3)
    assert files.run(DAY).success
    lake, landing = files.access.lake, files.access.landing_path
    found = reported_in(landing.parent, landing)
    version = files.access.events.publications(DATASET)[DAY].version
    read = [(one.dataset, one.inputs[DATASET]) for one in found]
    assert read[1:] == [("serving.page_stats_csv", version), ("serving.page_stats_parquet", version)]
    assert read[0][0] == "serving.page_stats_csv"
    assert (read[0][1] or 0) < version, "the file that was replaced has its events, too"
    graph = track(lake, files.access.events, DECLARED, landing=str(landing), reported=found)
    assert {edge.target: edge.version for edge in graph.edges if edge.source == DATASET} == dict(read[1:])
    assert graph.nodes["serving.page_stats_parquet"].owner == "team:analytics"
    for one in found:
        start, complete = (json.loads(line) for line in one.file.read_text().splitlines())
        assert openlineage_events.check(start) | openlineage_events.check(complete) == {
            *("parent", "ownership", "documentation", "version", "outputStatistics", "schema")
        }
        assert start["eventTime"] <= complete["eventTime"]


def test_a_day_without_page_views_has_empty_files(files: Files) -> None:
    files.publish("2026-01-06")
    files.publish(DAY, pages=())
    run = files.run(DAY)
    assert run.success, run.faults()
    assert files.file("csv", DAY).read_text(encoding="utf-8").splitlines() == [
        "Seite;Aufrufe;Besuche;Besucher;Anteil in Prozent"
    ]
    assert pq.read_table(files.file("parquet", DAY)).num_rows == 0
    assert compared(files.folder) == {DAY: Comparison(equal=0, examples=())}


def test_equal_files_agree_despite_rounded_percents(files: Files) -> None:
    files.publish(DAY)
    run = files.run(DAY)
    assert run.checks() == [(True, None)]
    assert compared(files.folder) == {DAY: Comparison(equal=len(PAGES), examples=())}


@pytest.mark.parametrize(("failing", "other"), [("csv", "parquet"), ("parquet", "csv")])
def test_a_failed_branch_stops_only_the_comparison(files: Files, failing: str, other: str) -> None:
    files.publish(DAY)
    file = blocked(files, failing)
    run = files.run(DAY)
    assert not run.success
    assert (run.steps(FAILED), run.steps(SKIPPED)) == ({f"page_stats_{failing}"}, set())
    assert run.materialized() == {other}
    assert f"the {failing} file cannot be written" in run.faults()
    assert files.due() == {DAY: [failing]}

    # Only the failed branch is run again; the other branch's file is not touched.
    file.rmdir()
    written = files.receipt(other, DAY)
    again = files.run(DAY, *files.due()[DAY], "compared")
    assert again.success
    assert again.materialized() == {failing, "compared"}
    assert files.receipt(other, DAY) == written
    assert files.due() == {}


def test_readers_keep_the_old_file_until_then(files: Files) -> None:
    files.publish(DAY)
    assert files.run(DAY).success
    before = files.file("csv", DAY).read_bytes()
    files.publish(DAY, views=3)
    assert files.due() == {DAY: ["csv", "parquet"]}
    partial = files.file("csv", DAY).with_name(".page_stats.csv.partial")
    partial.mkdir()
    assert files.run(DAY).materialized() == {"parquet"}
    assert files.file("csv", DAY).read_bytes() == before
    assert files.due() == {DAY: ["csv"]}


def test_a_day_published_between_the_branches_is_due_in_both(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.publish(DAY)
    take = SharedRead.take

    def overtaken(shared: SharedRead[object], *of: Any) -> object:
        monkeypatch.setattr(SharedRead, "take", take)
        found = take(shared, *of)
        files.publish(DAY, views=3)
        return found

    monkeypatch.setattr(SharedRead, "take", overtaken)
    assert files.run(DAY).success
    assert files.due() == {DAY: ["csv", "parquet"]}


def test_files_of_other_versions_are_not_compared(files: Files) -> None:
    """A comparison would report every row as different, though both writers are right."""
    files.publish(DAY)
    assert files.run(DAY).success
    files.publish(DAY, views=3)
    run = files.run(DAY, "csv", "compared")
    assert run.materialized() == {"csv"}
    assert "csv: version 2; parquet: version 0" in run.faults()


def test_a_comparison_that_was_cut_off_is_made_again(files: Files, tmp_path: Path) -> None:
    """The run's process is killed when it has compared, before it has written the result; an older one is there."""
    files.publish(DAY)
    assert files.run(DAY).success
    files.publish(DAY, views=3)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_COMPARING, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    written = [files.receipt(branch, DAY) for branch in ("csv", "parquet")]
    asked = files.asked()
    assert asked == {DAY: ["compared"]}
    assert files.run(DAY, *asked[DAY]).materialized() == {"compared"}
    assert [files.receipt(branch, DAY) for branch in ("csv", "parquet")] == written
    assert files.asked() == {}
    assert compared(files.folder) == {DAY: Comparison(equal=len(PAGES), examples=())}
    # An earlier release did not record the compared version.
    file = files.folder / "compared" / f"date={DAY}" / "comparison.json"
    older = {name: value for name, value in json.loads(file.read_bytes()).items() if name != "read"}
    file.write_text(json.dumps(older))
    assert files.due() == {}


def test_a_wrong_writer_is_found_by_day(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old writer of the story loses a page and doubles another; its counts are one too high."""
    files.publish(DAY, "2026-01-06")
    assert files.run("2026-01-06").checks() == [(True, None)]
    honest = declared.to_csv

    def wrong(rows: pa.Table) -> bytes:
        lines = (
            honest(rows).decode().replace("/2022/01/how-spark-works;2;", "/2022/01/how-spark-works;7;").split("\r\n")
        )
        return "\r\n".join([lines[0], *[line for line in lines[1:] if line[:2] != "/;"], lines[-2][:0]]).encode()

    branch = declared.page_files.branches[0]
    monkeypatch.setitem(vars(branch), "encode", wrong)
    run = files.run(DAY)
    assert run.success, "a difference is reported; it stops no writer"
    assert run.checks() == [(False, "1 of 2 partitions differ")]
    found = compared(files.folder)[DAY]
    assert (found.equal, found.different, found.only_first, found.only_second) == (len(PAGES) - 2, 1, 0, 1)
    assert found.largest == {"events": 5}
    assert found.examples == ("/", "/2022/01/how-spark-works")
    assert run.metadata("compared")["largest_difference"] == "events 5"


def test_a_file_without_receipt_is_written_again(files: Files) -> None:
    """A process dies between writing the file and its receipt."""
    files.publish(DAY)
    assert files.run(DAY).success
    content = files.file("csv", DAY).read_bytes()
    files.file("csv", DAY).with_name("_receipt.json").unlink()
    assert files.due() == {DAY: ["csv"]}
    assert files.run(DAY, "csv").success
    assert files.file("csv", DAY).read_bytes() == content
    files.file("parquet", DAY).unlink()
    assert files.due() == {DAY: ["parquet"]}, "a receipt without its file is ignored"


def test_a_table_built_anew_is_written_again(files: Files) -> None:
    files.publish(DAY)
    assert files.run(DAY).success
    receipt = files.file("csv", DAY).with_name("_receipt.json")
    found = json.loads(receipt.read_bytes())
    receipt.write_text(json.dumps({**found, "read": {**found["read"], "table": "an earlier one"}}))
    assert files.due() == {DAY: ["csv"]}


def test_concurrent_branches_share_one_read() -> None:
    shared: SharedRead[str] = SharedRead()
    shared.announce(DAY, ["csv", "parquet"])
    taken: list[str] = []
    threads = [
        threading.Thread(target=lambda name=name: taken.append(shared.take(DAY, name, lambda: "rows")))
        for name in ("csv", "parquet")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (taken, shared.reads, shared.kept) == (["rows", "rows"], 1, 0)


def test_a_failed_read_is_tried_by_the_next_branch() -> None:
    shared: SharedRead[str] = SharedRead()
    shared.announce(DAY, ["csv", "parquet"])

    def broken() -> str:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        shared.take(DAY, "csv", broken)
    assert shared.take(DAY, "parquet", lambda: "rows") == "rows"


def table(*rows: tuple[str, float | None]) -> pa.Table:
    return pa.table({"page": [row[0] for row in rows], "views": pa.array([row[1] for row in rows], pa.float64())})


def test_lost_doubled_and_changed_rows_are_counted() -> None:
    one = table(("a", 1), ("b", 2), ("b", 2), ("c", 3), ("d", None), ("e", float("nan")))
    two = table(("a", 1.4), ("b", 2), ("d", 0), ("e", float("nan")), ("f", 1))
    found = compare(one, two, key=["page"], tolerances={"views": 0.5})
    assert (found.equal, found.different, found.only_first, found.only_second) == (2, 2, 2, 1)
    assert found.largest == {}, "a missing number is no distance"
    assert found.examples == ("b", "c", "d", "e", "f")
    assert not found.agrees


def test_a_smaller_tolerance_finds_the_change() -> None:
    found = compare(table(("a", 1)), table(("a", 1.4)), key=["page"], tolerances={"views": 0.3})
    assert found.different == 1
    assert found.largest["views"] == pytest.approx(0.4)
