"""A value is found whatever it is packed, compressed, encoded or escaped in, and what cannot be read is named."""

from __future__ import annotations

import base64
import bz2
import gzip
import html
import io
import json
import lzma
import random
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.erasure.search import OTHER, Searched, search
from blogdata.evidence.persons import OUTSIDE_TABLES

VALUE = "zq4711canary@example.org"
OTHERS = [f"zq{number}canary@example.org" for number in range(1000, 1400)]
PLAIN = VALUE.encode()


def _searched(home: Path, *values: str) -> Searched:
    return search(home, values or [VALUE], OUTSIDE_TABLES)


def _how(home: Path, *values: str) -> set[str]:
    return {trace.how for trace in _searched(home, *values).traces}


def _lz4_block(content: bytes) -> bytes:
    packed = bytes(pa.Codec("lz4_raw").compress(content, asbytes=True))
    return b"LZ4Block" + struct.pack("<BiiI", 0x25, len(packed), len(content), 0) + packed


def _snappy(content: bytes) -> bytes:
    packed = bytes(pa.Codec("snappy").compress(content, asbytes=True))
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(packed)) + packed


def _zip(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.txt", content)
    return packed.getvalue()


def _arrow(codec: str) -> Callable[[bytes], bytes]:
    def pack(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return bytes(sink.getvalue())

    return pack


ENCODED: Mapping[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "UTF-16": lambda value: value.encode("utf-16"),
    "hex": lambda value: value.encode().hex().upper().encode(),
    "base64": lambda value: base64.b64encode(value.encode()),
    "JSON escapes": lambda value: "".join(f"\\u{ord(one):04X}" for one in value).encode(),
    "servers' escapes": lambda value: "".join(f"\\x{octet:02X}" for octet in value.encode()).encode(),
    "percent escapes": lambda value: quote(value, safe="").encode(),
    "HTML's entities": lambda value: value.replace("@", "&#x40;").encode(),
    "percent escapes, percent escapes": lambda value: quote(quote(value, safe="")).encode(),
    "JSON escapes, percent escapes": lambda value: quote(value, safe="").replace("%", "\\u0025").encode(),
    "lines of base64": lambda value: base64.encodebytes(b"#" * 50 + value.encode() + b"#" * 50),
}
PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": _zip,
}
INSIDE: Mapping[str, Callable[[bytes], bytes]] = {
    **{name: PACKED[name] for name in ("gzip", "zstd", "lz4")},
    "lz4 of Spark": _lz4_block,
    "snappy": _snappy,
}
MANY = json.dumps([*OTHERS, VALUE, *OTHERS]).encode()


@pytest.mark.parametrize("how", ENCODED)
def test_it_is_found_in_every_encoding(tmp_path: Path, how: str) -> None:
    (tmp_path / "file").write_bytes(b"before " + ENCODED[how](VALUE) + b" after")
    assert how in {each.removeprefix("as it is, ") for each in _how(tmp_path)}


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("after", range(3))
def test_it_is_found_in_base64_wherever_it_begins(tmp_path: Path, before: int, after: int) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        content = b"\xfe" * before + "canaryþÿ?>1".encode() + b"~" * after
        (tmp_path / encode.__name__).write_bytes(encode(content))
    assert len(_searched(tmp_path, "canaryþÿ?>1").traces) == 2


@pytest.mark.parametrize("name", PACKED)
def test_it_is_found_in_every_packing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(PACKED[name](MANY))
    assert _how(tmp_path) >= {name}


@pytest.mark.parametrize("name", INSIDE)
def test_it_is_found_in_a_packed_part_of_a_file(tmp_path: Path, name: str) -> None:
    """As in Spark's shuffled and spilled rows: parts of many tasks, one after the other."""
    (tmp_path / "file").write_bytes(b"other bytes" + INSIDE[name](b"nothing") + INSIDE[name](MANY))
    assert any(each.startswith(name.split()[0]) for each in _how(tmp_path))


def test_it_is_found_where_a_block_ends_within_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(_lz4_block(MANY[:-2] + PLAIN[:9]) + _lz4_block(PLAIN[9:]))
    (found,) = (trace for trace in _searched(tmp_path).traces if trace.how == "lz4")
    assert found.count == 2


def test_it_is_found_in_packings_within_packings(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(_zip(gzip.compress(_arrow("zstd")(quote(VALUE, safe="").encode()))))
    assert "zip, gzip, zstd, percent escapes" in _how(tmp_path)


def _table(values: Iterable[str]) -> pa.Table:
    texts = list(values)
    column = pa.array([{"login": text, "tags": [text]} for text in texts])
    return pa.table({"id": range(len(texts)), "login": pa.array(texts), "nested": column})


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd", "snappy", "lz4", "brotli"])
@pytest.mark.parametrize("encoding", ["dictionary", "PLAIN", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_it_is_found_in_values_of_parquet(tmp_path: Path, codec: str, encoding: str, version: str) -> None:
    is_dictionary = encoding == "dictionary"
    options: dict[str, object] = {} if is_dictionary else {"column_encoding": encoding, "use_dictionary": False}
    table = _table([*OTHERS, VALUE]).drop_columns(["nested", "id"])
    pq.write_table(table, tmp_path / "a.parquet", compression=codec, data_page_version=version, **options)
    found = _searched(tmp_path)
    assert "Parquet's column login" in {trace.how for trace in found.traces}
    in_pages = "Parquet's pages of login" in {trace.how for trace in found.traces}
    assert in_pages or encoding == "DELTA_BYTE_ARRAY", "a value there is written without what it shares with the last"
    assert found.unsearched == ()


def test_it_is_found_in_nested_columns_and_numbers(tmp_path: Path) -> None:
    pq.write_table(_table([VALUE]).append_column("number", pa.array([1234567890123])), tmp_path / "a.parquet")
    assert "Parquet's column nested" in _how(tmp_path)
    assert _how(tmp_path, "1234567890123") == {"Parquet's column number"}


def test_it_is_found_in_statistics_and_metadata_of_parquet(tmp_path: Path) -> None:
    pq.write_table(_table(OTHERS[:2]).replace_schema_metadata({"who": VALUE}), tmp_path / "a.parquet")
    assert "as it is" in _how(tmp_path)
    assert "as it is" in _how(tmp_path, OTHERS[0]), "the least value of the column"


def test_it_is_found_in_a_dictionary_whose_entry_no_row_uses(tmp_path: Path) -> None:
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["other", VALUE]))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"login": entries}), file, compression="gzip", store_schema=False, write_statistics=False)
    assert "Parquet's pages of login" in _how(tmp_path)


def test_it_is_found_in_the_log_of_a_table_and_its_checkpoint(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"login": [VALUE], "n": [1]}), partition_by=["login"])
    DeltaTable(tmp_path).create_checkpoint()
    found = {Path(trace.path).suffix: trace.how for trace in _searched(tmp_path).traces if "_delta_log" in trace.path}
    assert set(found) == {".json", ".parquet"}
    assert any(trace.how == "name of the file" for trace in _searched(tmp_path).traces)
    assert VALUE not in repr(_searched(tmp_path))
    assert quote(VALUE) not in repr(_searched(tmp_path))


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_it_is_found_in_rows_of_sqlite_that_were_deleted(tmp_path: Path, journal: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE t (value)")
        database.execute("INSERT INTO t VALUES (?)", (VALUE,))
        database.execute("DELETE FROM t")
        assert "as it is" in _how(tmp_path)
        if journal == "DELETE":
            database.execute("PRAGMA secure_delete = ON")
            database.execute("VACUUM")
            assert _how(tmp_path) == set()


@pytest.mark.parametrize("page", [512, 4096])
def test_it_is_found_in_a_free_page_of_sqlite_wherever_the_page_ends_within_it(tmp_path: Path, page: int) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
        database.execute(f"PRAGMA page_size = {page}")
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE t (value)")
        text = " ".join(f"{number:05} {VALUE}" for number in range(400))
        database.execute("INSERT INTO t VALUES (?)", (text,))
        database.commit()
        database.execute("DELETE FROM t")
        database.commit()
    found = {trace.how: trace.count for trace in _searched(tmp_path).traces}
    cut = 400 - found["as it is"]
    assert cut > 0
    # The first page that is free afterwards has a new beginning, where SQLite lists the others.
    assert found["SQLite's pages"] >= cut - 1


def test_what_cannot_be_read_is_named_and_what_can_be_is_searched(tmp_path: Path) -> None:
    random.seed(1)
    noise = random.randbytes(200_000)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(PLAIN + noise)[:-50_000])
    (tmp_path / "cut.zst").write_bytes(_arrow("zstd")(PLAIN + noise)[:-50_000])
    (tmp_path / "cut.lz4").write_bytes((_lz4_block(MANY) + _lz4_block(MANY))[:-10])
    pq.write_table(_table([VALUE]), tmp_path / "cut.parquet", compression="none")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "cut.parquet").read_bytes()[:-10])
    (tmp_path / "cut.zip").write_bytes(_zip(MANY)[:-10])
    with closing(sqlite3.connect(tmp_path / "cut.sqlite")) as database:
        database.execute("CREATE TABLE t (value)")
        database.executemany("INSERT INTO t VALUES (?)", [(VALUE,)] * 1000)
        database.commit()
    (tmp_path / "cut.sqlite").write_bytes((tmp_path / "cut.sqlite").read_bytes()[:-5000])
    found = _searched(tmp_path)
    named = {unread.path for unread in found.unsearched}
    assert named >= {"cut.gz", "cut.zst", "cut.lz4", "cut.parquet", "cut.zip", "cut.sqlite"}
    assert {trace.path for trace in found.traces} >= {"cut.gz", "cut.lz4", "cut.parquet", "cut.sqlite"}


def test_bytes_that_only_look_packed_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x \x1f\x8b\x08 y \x28\xb5\x2f\xfd z LZ4Block \x82SNAPPY\0 \x04\x22\x4d\x18 " * 3)
    assert _searched(tmp_path).unsearched == ()


def test_it_is_found_across_the_parts_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blogdata.erasure.search._PART", 1000)
    monkeypatch.setattr("blogdata.erasure.search._OVERLAP", 200)
    (tmp_path / "file").write_bytes(b"." * 990 + PLAIN + b"." * 5000)
    assert _how(tmp_path) == {"as it is"}


def test_a_short_value_is_found_as_a_word_only(tmp_path: Path) -> None:
    (tmp_path / "word").write_text(json.dumps({"login": "ann"}))
    (tmp_path / "part").write_text(json.dumps({"text": "planning"}))
    assert [trace.path for trace in _searched(tmp_path, "ann").traces] == ["word"]


def test_other_values_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(json.dumps(OTHERS).encode())
    pq.write_table(_table(OTHERS), tmp_path / "a.parquet")
    assert _searched(tmp_path).traces == ()


def test_many_values_are_found_at_once_and_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(json.dumps(OTHERS * 3).encode())
    (found,) = _searched(tmp_path, *OTHERS).traces
    assert found.count == 3 * len(OTHERS)


def test_a_place_is_named(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for file in (tmp_path / "home" / "partner.sqlite", tmp_path / "home" / "odd", lake / "refused" / "a.parquet"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(PLAIN)
    found = search(tmp_path / "home", [VALUE], OUTSIDE_TABLES, elsewhere={"lake": lake})
    places = {trace.path: trace.place for trace in found.traces}
    assert places["partner.sqlite"] == "outbox of the partner's feed"
    assert places["lake/refused/a.parquet"] == "refused batches"
    assert places["odd"] == OTHER


def test_a_link_is_not_followed_and_its_own_text_is_searched(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(f"/nowhere/{html.escape(VALUE)}")
    assert _how(tmp_path) == {"link"}
