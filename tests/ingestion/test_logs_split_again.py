"""A log that has grown is split again: what was published of it is still there, and what is new sorts behind it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from blogdata.patterns.ingestion import landed_content, log_splitter, vanished_lines
from blogdata.patterns.ingestion.landed_content import Line
from blogdata.patterns.ingestion.log_formats import formats
from blogdata.patterns.ingestion.log_splitter import split_all
from ingestion.growing_logs import NOW, line, put
from ingestion.test_log_splitter import parts, split


def lost_by_hour(before: Mapping[str, list[Line]], now: Mapping[str, list[Line]]) -> list[vanished_lines.Loss]:
    """Compare what a run has published of each hour with what has landed; a run refuses hours that lost lines."""
    found = []
    for hour, published in before.items():
        landed = now.get(hour, [])
        sizes = [Counter(one.file for one in lines) for lines in (published, landed)]
        lost = vanished_lines.loss(hour, *sizes, published_lines=published.copy, landed_lines=landed.copy)
        found.append(lost)
    return [loss for loss in found if loss is not None]


def test_the_begin_of_a_line_is_not_lost_when_the_line_has_ended(tmp_path: Path) -> None:
    data = line(0) + line(2) + line(4) + line(3604)
    for cut in range(len(line(0)) + 1, len(data), 11):
        landing = tmp_path / str(cut)
        put(landing, data[:cut])
        split(landing)
        published = lines_by_hour(landing)
        put(landing, data)
        split(landing, now=NOW + timedelta(seconds=1))
        assert lost_by_hour(published, lines_by_hour(landing)) == []


def lines_by_hour(landing: Path) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for one in landed_content.landed_lines(parts(landing), landing):
        found[one.file.rpartition("/")[0]].append(one)
    return found


def test_later_parts_sort_later_however_many_logs_are_split_with_theirs(tmp_path: Path) -> None:
    """Of many logs of one call, the first bear earlier times; a stream calls again after seconds."""
    put(tmp_path, line(0))
    assert [one.fault for one in split_all(tmp_path, formats().hour_of, now=NOW)] == [None]
    put(tmp_path, line(0) + line(1))
    for number in range(9):
        put(tmp_path, line(60 + number), f"{number}.log")
    first, *_ = split_all(tmp_path, formats().hour_of, now=NOW + timedelta(seconds=5))
    assert first.log.name == "a.log"
    taken = [re.findall(log_splitter.PART, path.name)[0] for path in sorted(tmp_path.glob("visits/*/*/a-*.log"))]
    assert [int(offset) for _, _, offset in sorted(taken, key=lambda part: part[1:])] == [0, len(line(0))]
