"""Every place with a value of a person is declared: all files of a deployment are searched for planted values."""

from __future__ import annotations

import gzip
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assets.streams import STREAMS
from blogdata.erasure.search import OTHER, search
from blogdata.evidence.persons import Place, places
from lineage import canaries, live
from lineage.canaries import Canaries, Canary
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import EVERY

PLACES = tuple(places(EVERY.values()))
LOGS = "/_delta_log/"
SKETCHES = "visitors"
TOKENS = {
    ("gold.visits_weekly", "visit_id"),
    *((name, "identity") for name in ("silver.identities", "silver.users", "silver.users_current")),
}
"""Pseudonyms that are tokens of the platform's own, and so not a value that landed."""
ENCRYPTED = {
    (name, column) for name, contract in EVERY.items() if contract.encrypted for column in contract.encrypted.columns
}
"""Columns that are stored encrypted."""


def _is_certain(place: Place) -> bool:
    """Return whether values can be found in a place by who looks for them: not in sketches, tokens and ciphertexts."""
    names = [name.strip("`") for name in place.values.split(", ")]
    readable = [name for name in names if name != SKETCHES and (place.name, name) not in TOKENS | ENCRYPTED]
    return place.always and bool(readable)


CERTAIN = [place for place in PLACES if _is_certain(place)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where planted values were found.

    Args:
        files: File to the values in it; its path is below the home.
        columns: Dataset and column to the values in it.
        limits: The values in footers of Parquet files, as the least or greatest of a row group; refused batches aside.
        home: The deployment's home.
        planted: All planted values.
    """

    files: Mapping[str, set[Canary]]
    columns: Mapping[tuple[str, str], set[Canary]]
    limits: set[Canary]
    home: Path
    planted: Canaries

    @property
    def of_persons(self) -> list[str]:
        """The files with a value that identifies somebody."""
        return [path for path, values in self.files.items() if any(value.identifies for value in values)]


@pytest.fixture(scope="module")
def found(deploy: Deploy) -> Found:
    """What is found in a deployment that has processed the input, with a refused hour and all streams."""
    made = deploy("canaries")
    planted = canaries.plant(made)
    problems = made.run().problems
    assert any("bounded_duplicates" in problem for problem in problems), problems
    for stream in STREAMS.values():
        live.tick(made, stream)
    _add_derived(made, planted)
    return _search(made.settings.home, planted)


def test_every_place_with_a_persons_value_is_declared(found: Found) -> None:
    assert [path for path in found.of_persons if not any(place.has(path) for place in PLACES)] == []


def test_a_search_of_everything_packed_finds_no_other_place(found: Found) -> None:
    """Compressed state of streams included: what the bytes of a file do not show."""
    seen = search(found.home, [value.token for value in found.planted.every if value.identifies], PLACES)
    assert {trace.path for trace in seen.traces} >= set(found.of_persons)
    assert [trace for trace in seen.traces if trace.place == OTHER] == []
    assert seen.unsearched == ()
    assert any(trace.how == "RocksDB's blocks" for trace in seen.traces)


@pytest.mark.parametrize("place", CERTAIN, ids=lambda place: place.name)
def test_a_declared_place_has_persons_values(found: Found, place: Place) -> None:
    assert any(place.has(path) for path in found.of_persons)


def test_a_refused_batch_is_found(found: Found) -> None:
    """It is declared as possible only, as most deployments have none."""
    (refused,) = [place for place in PLACES if place.name == "refused batches"]
    assert any(refused.has(path) for path in found.of_persons)


def test_columns_with_identifiers_are_those_that_contracts_declare(found: Found) -> None:
    declared = {
        (name, column.name) for name, contract in EVERY.items() for column in contract.columns if column.singles_out
    }
    seen = {where for where, values in found.columns.items() if any(value.identifies for value in values)}
    assert seen - declared == set()
    assert {(name, column) for name, column in declared - seen if column != SKETCHES} == TOKENS | ENCRYPTED


def test_no_statistics_have_a_persons_value(found: Found) -> None:
    in_logs = {value for path, values in found.files.items() if LOGS in path for value in values}
    assert {value.field for value in in_logs if value.identifies} == set()
    assert "page" in {value.field for value in in_logs}, "the search sees statistics"


def test_no_footer_of_a_data_file_has_a_persons_value(found: Found) -> None:
    """Those of a refused batch do: its files are written without a contract."""
    assert {value.field for value in found.limits if value.identifies} == set()
    assert "page" in {value.field for value in found.limits}, "the search sees limits"


def _add_derived(made: Deployment, planted: Canaries) -> None:
    """Add the ids that the platform has derived from planted values: keyed hashes of clients, and sessions."""
    addresses = {one.token for one in planted.every if one.field == "address"}
    derived = [
        Canary(kind="request", field=name, token=value)
        for address, *ids in made.rows("silver.visits", "ip", "visit_id", "user_id")
        if address in addresses
        for name, value in zip(("visit_id", "user_id"), ids, strict=True)
    ]
    assert derived
    derived += [
        Canary(kind="session", field="session_id", token=value) for value in made.rows("silver.sessions", "session_id")
    ]
    planted.every.extend(derived)


def _search(home: Path, planted: Canaries) -> Found:
    files: defaultdict[str, set[Canary]] = defaultdict(set)
    columns: defaultdict[tuple[str, str], set[Canary]] = defaultdict(set)
    for file in sorted(home.rglob("*")):
        if not file.is_file():
            continue
        path = file.relative_to(home).as_posix()
        for column, content in _contents(file):
            values = set(planted.found_in(content))
            files[path] |= values
            if column and path.startswith("lake/"):
                columns[_dataset(path), column] |= values
    written = [file for file in home.rglob("*.parquet") if "/lake/refused/" not in file.as_posix()]
    limits = {value for file in written for value in planted.found_in(_limits(file))}
    known = {where: values for where, values in columns.items() if where[0] in EVERY}
    return Found(files=files, columns=known, limits=limits, home=home, planted=planted)


def _contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Return the bytes of a file as they are, and readable: each column of a Parquet file with its name."""
    content = file.read_bytes()
    yield "", content
    if content.startswith(b"\x1f\x8b"):
        yield "", gzip.decompress(content)
    elif content.startswith(b"PAR1"):
        table = pq.ParquetFile(file).read()
        for name in table.column_names:
            yield name, repr(table[name].to_pylist()).encode()
    elif content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            yield "", "\n".join(database.iterdump()).encode()


def _limits(file: Path) -> bytes:
    footer = pq.read_metadata(file)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    statistics = [chunk.statistics for chunk in chunks]
    return repr([(each.min, each.max) for each in statistics if each and each.has_min_max]).encode()


def _dataset(path: str) -> str:
    _, layer, table, *_ = path.split("/")
    return f"{layer}.{table.removeprefix('_')}"
