"""A value is found in every file that has it, as bytes or as a library reads them, and what is not read is named."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.privacy.file_search import search

VALUE, OTHERS = "jörg.canary@mail.example", [f"visit-{number:08}-canary" for number in range(500)]
PLAIN = VALUE.encode()
MANY = json.dumps([*OTHERS, VALUE, *OTHERS], ensure_ascii=False).encode()
PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def how(folder: Path, *values: str) -> set[str]:
    found = search(folder, values or [VALUE])
    assert found.unsearched == {}
    return {each for hows in found.traces.values() for each in hows.split(", ")}


@pytest.mark.parametrize("form", [VALUE, json.dumps(VALUE), quote(VALUE, safe="")])
def test_it_is_found_as_it_is_and_as_json_and_urls_write_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_text(f"before {form} after")
    assert how(tmp_path) == {"bytes"}


@pytest.mark.parametrize("name", PACKED)
def test_it_is_found_in_a_compressed_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(PACKED[name](MANY))
    assert how(tmp_path) == {name}


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_it_is_found_in_values_of_parquet(tmp_path: Path, codec: str) -> None:
    """Nested ones and numbers, too, and where a deletion vector marks the row."""
    texts = [*OTHERS, VALUE]
    columns = {
        "text": pa.array(texts),
        "raw": pa.array([PLAIN, b"\xff"]),
        "nested": pa.array([{"tags": [text]} for text in texts]),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({"c": column}), tmp_path / name, compression=codec, write_statistics=False)
    traces = search(tmp_path, [VALUE]).traces
    assert {path for path, ways in traces.items() if "Parquet" in ways} == columns.keys()
    pq.write_table(pa.table({"n": range(1234567890123, 1234567890623)}), tmp_path / "numbers", compression=codec)
    assert how(tmp_path, "1234567890123") == {"Parquet"}


def test_it_is_found_in_the_log_of_a_table_and_in_the_name_of_a_folder(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"login": [VALUE], "n": [1]}), partition_by=["login"])
    DeltaTable(tmp_path).create_checkpoint()
    found = search(tmp_path, [VALUE])
    assert {Path(path).suffix for path in found.traces if "_delta_log" in path} == {".json", ".parquet"}
    assert any("name" in how for how in found.traces.values())
    assert not any(form in repr(found) for form in (VALUE, quote(VALUE), quote(VALUE, safe="")))


@pytest.mark.parametrize("before", ["/who-reads/", "/", ""])
def test_its_beginning_is_found_where_a_statistic_cut_it(tmp_path: Path, before: str) -> None:
    person = "user-of-a-long-name-0123456789abcdef0123456789"
    shown = f"{before}{person}"[:32]
    (tmp_path / "_delta_log").mkdir()
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    for text, named in ((shown, True), (shown[:-4] + "else", False), (person[:20], False)):
        statistics = json.dumps({"numRecords": 1, "minValues": {"context": {"page": text}}})
        log.write_text(json.dumps({"add": {"path": "a", "stats": statistics}}))
        assert how(tmp_path, person) == ({"beginning in statistics"} if named else set())


def test_it_is_found_in_rows_of_sqlite_wherever_a_page_ends(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA page_size = 512")
        database.execute("CREATE TABLE t (value)")
        for before in range(40):
            database.execute("DELETE FROM t")
            database.execute("INSERT INTO t VALUES (?)", ("x" * (440 + before) + VALUE,))
            assert "SQLite" in how(tmp_path)
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("UPDATE t SET value = ?", (VALUE,))
        database.execute("DELETE FROM t")
        assert how(tmp_path) == {"bytes"}, "a row that was deleted"
        database.execute("PRAGMA secure_delete = ON")
        database.execute("VACUUM")
        assert how(tmp_path) == set()
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("INSERT INTO t VALUES (?)", ("x" * 450 + VALUE,))
        assert "SQLite" in how(tmp_path), "a row in its log of writes"


def test_what_is_not_read_is_named_and_what_can_be_is_searched(tmp_path: Path) -> None:
    noise = bytes(range(256)) * 800
    (tmp_path / "cut.gz").write_bytes(gzip.compress(noise)[:-100])
    pq.write_table(pa.table({"c": [VALUE]}), tmp_path / "cut.parquet", compression="none")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "cut.parquet").read_bytes()[:-10])
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\0" + PLAIN)
    with zipfile.ZipFile(tmp_path / "state.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows", MANY)
    for name, content in (("1.delta", b"LZ4Block"), ("rows.sst", b"rows")):
        (tmp_path / name).write_bytes(content + b" of a state")
    found = search(tmp_path, [VALUE])
    assert {*found.unsearched} == {"cut.gz", "cut.parquet", "cut.sqlite", "state.zip", "1.delta", "rows.sst"}
    assert {*found.traces} == {"cut.parquet", "cut.sqlite"}
    assert found.files == 6


def test_it_is_found_across_the_parts_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blogdata.privacy.file_search._PART", 10)
    (tmp_path / "file").write_bytes(b"." * 995 + PLAIN + b"." * 5000)
    assert how(tmp_path) == {"bytes"}


def test_a_short_value_is_found_as_a_word_only_and_other_values_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "word").write_text(json.dumps({"login": "ann"}))
    (tmp_path / "part").write_text(json.dumps({"text": "planning"}))
    (tmp_path / "others").write_bytes(json.dumps(OTHERS).encode())
    assert {*search(tmp_path, ["ann", "anna@mail.example"]).traces} == {"word"}
    assert search(tmp_path, [VALUE]).traces == {}
    assert {*search(tmp_path, OTHERS).traces} == {"others"}


def test_folders_elsewhere_are_searched_once_and_a_link_is_not_followed(tmp_path: Path) -> None:
    home, lake = tmp_path / "home", tmp_path / "home" / "data"
    lake.mkdir(parents=True)
    (lake / "a").write_bytes(PLAIN)
    (home / "link").symlink_to(f"/nowhere/{VALUE}")
    found = search(home, [VALUE], elsewhere={"lake": lake})
    assert (found.traces, found.files) == ({"lake/a": "bytes", "link": "link"}, 2)
