"""A landed line is read here and by Spark's workers into the same row, or for the same reasons into none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blog_log
from assets.bronze.ad_lines import AdLines
from assets.bronze.legacy_visits import PREFIX
from assets.bronze.reference_lines import DeviceLines, UserLines
from assets.bronze.visit_lines import ReceivedLines
from blogdata.landing import lines
from blogdata.landing.lines import LineReader
from blogdata.operate.config import LogSettings
from blogdata.simulator.landing_zone import simulate
from blogdata.simulator.spec import LINE_FAULTS, FaultRates, SimulationSpec
from datasets import log_rows
from lineage import odd_lines
from unit import test_log_formats, test_log_headers, test_reference_lines, test_request_lines, test_visit_lines

LONGEST = 16 << 20
CONTAINED = ("web-1  | 2022-10-03T07:20:44.1Z ", "[pod/a/b] ", "2022-10-03T07:20:44.1Z stdout F ")
Seeds = Mapping[str, list[bytes]]
"""Name of a file to the lines that it has, and of which further ones are drawn."""


def encoded(*texts: str | bytes) -> list[bytes]:
    return [text if isinstance(text, bytes) else text.encode() for text in texts]


def seeds() -> Mapping[str, Seeds]:
    events = encoded(*test_visit_lines.VALID.values(), *(line for line, _ in test_visit_lines.REJECTED.values()))
    events += odd_lines.each_oddity()
    requests = [line for line, _ in (*log_rows.FILTERED.values(), *test_request_lines.REJECTED.values())]
    requests += [line for line, _ in (*log_rows.UNFIT, *test_request_lines.BY_SETTINGS)]
    requests += [*test_log_formats.SAMPLES.values(), *(before + log_rows.line() for before in CONTAINED)]
    requests += [before + test_log_headers.LINE for before in test_log_headers.SYSLOG]
    of_log = [*encoded(*requests), *list(blog_log.lines_of_a_log())[:300]]
    headers = (test_log_headers.DEFAULT, test_log_headers.OWN, test_log_headers.CLOUDFRONT)
    below = encoded(
        *(line for header in headers for line in (header, test_log_headers.iis("b.example.com"), *requests))
    )
    users, devices = odd_lines.drawn(odd_lines.users(), 50), odd_lines.drawn(odd_lines.devices(), 50)
    header = b"id;login;email;registered_datetime"
    return {
        "visits": {"a.json": events, f"{PREFIX}-1.jsonl": events, "a.log": of_log, "headers.log": below},
        "ads": {"a.json": odd_lines.each_odd_display()},
        "users": {"a.json": users, "users_table-1.jsonl": users, "a.csv": [header, *users]},
        "devices": {"a.csv": [b"type;full_name;version", *devices], "a.json": [b'{"type": 1, "version": 1}', *devices]},
    }


READERS: Mapping[str, tuple[LineReader, str]] = {
    "visits": (ReceivedLines(LogSettings()), test_visit_lines.HOUR),
    "ads": (AdLines(), test_visit_lines.HOUR),
    "users": (UserLines(), test_reference_lines.DAY),
    "devices": (DeviceLines(), test_reference_lines.DAY),
}


@pytest.mark.parametrize("drawn", [50, pytest.param(10_000, marks=pytest.mark.campaign)])
def test_a_line_is_read_here_as_by_workers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: int
) -> None:
    monkeypatch.setattr(lines, "_TASK_BYTES", 2_000_000)
    faults = FaultRates(**{**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0})
    simulate(SimulationSpec(days=1, visits_per_day=2400, seed=7, faults=faults, part_lines=200, ads=True), tmp_path)
    for table, of_table in seeds().items():
        (reader, partition), folder = READERS[table], tmp_path / table
        folder.mkdir(exist_ok=True)
        for name, known in of_table.items():
            short = [line for line in known if len(line) < 100_000]
            (folder / name).write_bytes(b"\n".join([*known, *odd_lines.drawn(odd_lines.edited(short), drawn)]))
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name[0] != "_")
        pieces = [lines.Piece(str(file.relative_to(tmp_path)), partition) for file in files]
        here = pa.Table.from_batches(lines.Work(root=tmp_path, reader=reader, longest=LONGEST).batches(pieces))
        frame = lines.read(spark, tmp_path, {partition: files}, reader)
        assert in_order(frame.toArrow()).equals(in_order(here)), table
        assert len(here) > drawn * len(of_table)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("source_file", "ascending"), ("source_offset", "ascending")])
