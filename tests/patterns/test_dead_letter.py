import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assets.bronze.request_lines import LogLines
from blogdata.cli import land_commands
from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy
from blogdata.files import write_whole
from blogdata.landing import dead_letter
from blogdata.landing.dead_letter import Correction
from blogdata.landing.readiness_marker import scan
from blogdata.operate.config import LogSettings
from quality.contracts import CONTRACTS

FILE = "visits/date=2026-01-05/hour=03/visits-0000.json"
CORRECTION = Correction(source_file=FILE, source_offset=17, payload='{"visit_id":"v"}')
OTHER = Correction(source_file=FILE, source_offset=99, payload="{}")
DEAD = [(FILE, 17), (FILE, 99)]
land = partial(dead_letter.land_corrections, letters=CONTRACTS["bronze.dead_letters"])


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A landing zone with the hour of the dead letters, an hour after its flag."""
    file = tmp_path / FILE
    file.parent.mkdir(parents=True)
    file.write_text("{")
    flag = file.with_name("_SUCCESS")
    flag.touch()
    os.utime(flag, ns=(flag.stat().st_mtime_ns - 3_600_000_000_000,) * 2)
    os.utime(file, ns=(flag.stat().st_mtime_ns - 1,) * 2)
    return tmp_path


def landed(landing: Path) -> dict[str, bytes]:
    return {str(path.relative_to(landing)): path.read_bytes() for path in landing.rglob("replay-*")}


def test_a_corrected_display_lands_among_the_ads(tmp_path: Path) -> None:
    file = FILE.replace("visits", "ads")
    (tmp_path / file).parent.mkdir(parents=True)
    for name in (file, f"{Path(file).parent}/_SUCCESS"):
        (tmp_path / name).touch()
    correction = replace(CORRECTION, source_file=file)
    letters = land_commands._letters_of([correction])
    assert letters.dataset == "bronze.ad_dead_letters"
    files, _ = dead_letter.land_corrections([correction], [(file, 17)], tmp_path, letters=letters)
    assert Path(files[0]).parent == Path(file).parent
    with pytest.raises(PlatformError, match="of ads and visits"):
        land_commands._letters_of([correction, CORRECTION])
    with pytest.raises(PlatformError, match="the corrections are of users"):
        land_commands._letters_of([replace(CORRECTION, source_file=FILE.replace("visits", "users"))])


@pytest.mark.parametrize("name", ["visits-0000.json", "access.log"])
def test_the_last_correction_of_a_line_lands_once(landing: Path, name: str) -> None:
    file = (landing / FILE).with_name(name)
    file.touch()
    position: dict[str, Any] = {"source_file": str(file.relative_to(landing)), "source_offset": 17}
    lines = [json.dumps({**position, "payload": payload}).encode() for payload in ("worse", "better", "better")]
    worse, better = (Correction(**position, payload=text) for text in ("worse", "better"))
    assert [*dead_letter.read_corrections(lines, "corrections.jsonl")] == [better]
    dead = [(better.source_file, 17)]
    first, _ = land([worse], dead, landing)
    assert landed(landing) == {first[0]: b"worse\n"}
    (before,) = scan(landing / "visits", Grain.HOUR)
    assert before.ready
    assert land([worse], dead, landing) == (first, ())
    assert [hour.files for hour in scan(landing / "visits", Grain.HOUR)] == [before.files]
    renamed, _ = land([worse, better], dead, landing)
    assert renamed != first, "a stream reads no name twice"
    assert [*landed(landing).values()] == [b"better\n"]
    assert land([better], dead, landing)[1] == ()


def test_a_corrected_line_of_a_log_has_the_columns_of_the_header_above_it(landing: Path) -> None:
    file = (landing / FILE).with_name("access.log")
    header = b"#Fields: date time cs-method cs-uri-stem c-ip sc-status"
    good = "2026-01-05 03:00:00 GET /a 192.0.2.7 200"
    file.write_bytes(b"\n".join([header.replace(b" c-ip", b""), header, b"dead", header[:-10], b""]))
    position = (str(file.relative_to(landing)), file.read_bytes().index(b"dead"))
    correction = Correction(source_file=position[0], source_offset=position[1], payload=good)
    (place,), _ = land([correction], [position], landing)
    lines = (landing / place).read_bytes().split(b"\n")
    assert lines == [header, good.encode(), b""]
    logs = LogLines(LogSettings())
    read, at = logs.of_file(place, "2026-01-05T03"), logs.names.index("reasons")
    assert [read(0, line)[at] for line in lines[:2]] == [[], []]


def test_a_correction_without_a_dead_letter_is_refused(landing: Path) -> None:
    with pytest.raises(PlatformError, match="99") as refused:
        land([CORRECTION, OTHER], [(FILE, 17)], landing)
    assert "bronze.dead_letters WHERE arrival_hour = '2026-01-05T03'" in refused.value.next_step
    assert landed(landing) == {}


@pytest.mark.parametrize(
    ("gone", "message"), [("visits-0000.json", "not in the landing zone any more"), ("_SUCCESS", "no _SUCCESS")]
)
def test_a_correction_for_an_incomplete_hour_is_refused(landing: Path, gone: str, message: str) -> None:
    """Bronze is computed from landed files: the other lines of the hour would be lost without the ledger noticing."""
    (landing / FILE).with_name(gone).unlink()
    with pytest.raises(PlatformError, match=f"{message}|{FILE}.*{message}"):
        land([CORRECTION], DEAD, landing)
    assert landed(landing) == {}


def test_an_interrupted_replay_is_finished_by_the_next(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(target: Path, data: bytes) -> None:
        if landed(landing):
            raise KeyboardInterrupt
        write_whole(target, data)

    with monkeypatch.context() as patch:
        patch.setattr(dead_letter, "write_whole", cut_off)
        with pytest.raises(KeyboardInterrupt):
            land([CORRECTION, OTHER], DEAD, landing)
    (first,) = landed(landing)
    files, changed = land([CORRECTION, OTHER], DEAD, landing)
    assert set(changed) == set(files) - {first}
    assert sorted(landed(landing).values()) == [b'{"visit_id":"v"}\n', b"{}\n"]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"source_file": "x"}',
        b'{"source_file":"x","source_offset":1e999,"payload":"a"}',
        b'{"source_file":"x","source_offset":1,"payload":"a\\nb"}',
        b'{"source_file":"x","source_offset":1,"payload":"\xe9"}',
    ],
)
def test_an_invalid_correction_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(PlatformError, match="line 2"):
        dead_letter.read_corrections([b"\n", line], "corrections.jsonl")


ALL_DEAD = dict.fromkeys(("T01", "T02", "T03"), (40, 40))


@pytest.mark.parametrize(
    ("hours", "share", "selection"),
    [
        ({"T03": (100, 100), "T04": (7, 500)}, "100 of 100 rows (100.0%)", "= 'T03'"),
        ({"T00": (9, 9), **ALL_DEAD}, "120 of 120 rows", "BETWEEN 'T01' AND 'T03'"),
        ({**ALL_DEAD, "T00": (40, 40), "T02": (1, 900)}, "120 of 120 rows", "BETWEEN 'T00' AND 'T03'"),
    ],
)
def test_a_share_over_the_bound_is_an_error_with_the_query_of_the_judged_hours(
    hours: dict[str, tuple[int, int]], share: str, selection: str
) -> None:
    fault = dead_letter.error_for_partition(
        "T03", hours, max_share=0.75, dataset="bronze.dead_letters", column="hour", then=Remedy("go on")
    )
    assert fault is not None
    assert share in fault.what
    query = f"SELECT reasons, count(*) FROM bronze.dead_letters WHERE hour {selection} GROUP BY reasons"
    assert f'blogdata sql "{query}"; mend the producer, then go on' in fault.next_step
