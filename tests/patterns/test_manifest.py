import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from blogdata.contract.schema import Classification, Column, How, Subject, Whose
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.runs import upkeep
from blogdata.table import expiry, manifest, members, unneeded
from blogdata.table.lake import Lake
from blogdata.table.manifest import MANIFEST
from toy import declared
from toy_members import DATASET, NOON, member

PAGES = declared(
    "gold.pages",
    "day STRING NOT NULL, page STRING NOT NULL, views BIGINT",
    by="day",
)
WEEKS = declared(DATASET, "week STRING, click BIGINT", by="week")
OLD = [("mon", "/a", 1), ("mon", "/b", 2), ("tue 50 %", "/c", 3)]
NEW = [("mon", "/a", 10), ("mon", "/ä", 20)]
Read = Callable[[Path, str], list[tuple[Any, ...]]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with two days; its path and a partition's value have characters that addresses escape."""
    lake = Lake(root=str(tmp_path / "the lake's folder"))
    write(lake, OLD, mode="error")
    return lake


def write(lake: Lake, rows: Iterable[tuple[str, str, int]], **how: Any) -> None:
    table = pa.table(dict(zip(("day", "page", "views"), map(list, zip(*rows, strict=True)), strict=True)))
    write_deltalake(lake.path(PAGES.dataset), table, partition_by=["day"], **how)


def parquet(location: Path, column: str) -> list[tuple[Any, ...]]:
    """Read with a reader that knows nothing but Parquet; the partition is in the name of the manifest's folder."""
    rows = []
    for file in location.resolve().rglob(MANIFEST):
        partition = [unquote(file.parent.name.removeprefix(f"{column}="))] if "=" in file.parent.name else []
        for line in file.read_text("utf-8").splitlines():
            table = pq.ParquetFile(line.removeprefix("file://")).read()
            rows += [(*partition, *row.values()) for row in table.to_pylist()]
    return sorted(rows)


def duckdb(location: Path, column: str) -> list[tuple[Any, ...]]:
    """Read with DuckDB, by the statements of the docs."""
    connection = pytest.importorskip("duckdb").connect()
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "other-readers.md").read_text("utf-8")
    script = page.partition("```sql\n")[2].partition("```")[0]
    first, last, _ = script.replace(
        "/data/lake/_shares/gold.page_stats/current", str(location).replace("'", "''")
    ).split(";\n")
    connection.execute(first)
    result = connection.execute(last)
    names = [name for name, *_ in result.description]
    order = [column, *(name for name in names if name != column)]
    return sorted(tuple(row[names.index(name)] for name in order) for row in result.fetchall())


@pytest.mark.parametrize("read", [parquet, duckdb], ids=["parquet", "duckdb"])
def test_a_reader_sees_one_version_whose_files_are_held_until_the_share_moves_on(lake: Lake, read: Read) -> None:
    now = datetime.now(timezone.utc) + timedelta(days=365)

    def remove() -> int:
        """Remove old files as the platform does, a year later; return how many are left."""
        unneeded.remove(upkeep.unneeded_data(lake, EventLog(lake), PAGES, now))
        return len(files())

    def files() -> list[Path]:
        return list(Path(lake.path(PAGES.dataset)).rglob("*.parquet"))

    shared, first = manifest.share(lake, PAGES, now=NOON), files()
    assert (shared.version, shared.files, shared.rows) == (0, 2, 3)
    where = manifest.location(lake, PAGES.dataset)
    for _ in range(3):
        write(lake, NEW, mode="overwrite", predicate="day = 'mon'")
    assert len(files()) > remove()
    assert read(where, "day") == OLD
    for version in (3, 4):
        assert manifest.share(lake, PAGES).version == version
        assert read(where, "day") == sorted([*NEW, OLD[2]])
        assert len(manifest.shared_files(lake, PAGES.dataset)) == 3, "of it and of the share before"
        write(lake, NEW, mode="overwrite", predicate="day = 'mon'")
    manifest.withdraw(lake, PAGES.dataset)
    assert (list(where.parent.iterdir()), manifest.current(lake, PAGES.dataset)) == ([], None)
    remove()
    assert sorted(file.exists() for file in first) == [False, True], "the other one is of the newest version, too"


def test_a_dataset_of_several_tables_is_shared_whole(tmp_path: Path) -> None:
    """Of a frozen table, only the weeks that are still read from it; a replaced table is not removed while shared."""
    lake, (first, second) = Lake(root=str(tmp_path)), ("2026-01-05", "2026-01-12")
    single = member(lake, second, rows=2)
    year = members.table_of(DATASET, "2026-a")
    write_deltalake(lake.path(year), pa.table({"week": [first, second], "click": [7, 8]}), partition_by=["week"])
    frozen = replace(single, name="2026", location="2026-a", frozen=True, rows_of={first: 1})
    assert members.commit(lake, DATASET, members.NONE_YET, [frozen, single], {}) == 0
    assert manifest.share(lake, WEEKS).rows == 3
    seen = members.seen(lake, DATASET)
    newer = replace(single, location="newer", since_version=1)
    shutil.copytree(lake.path(year), lake.path(members.table_of(DATASET, "newer")))
    assert members.commit(lake, DATASET, seen, [*seen.superseded({first, second}, 1, NOON), newer], {}) == 1

    long_after = NOON + timedelta(days=30)
    assert expiry.remove(lake, DATASET, keep=timedelta(days=7), now=long_after) == {}
    expected = [(first, 7), (second, 0), (second, 1)]
    assert parquet(manifest.location(lake, DATASET), "week") == expected
    manifest.withdraw(lake, DATASET)
    removed = expiry.remove(lake, DATASET, keep=timedelta(days=7), now=long_after)
    assert list(removed) == ["2026-01-12-a", "2026-a"]


@pytest.mark.parametrize("subject", [None, *[Subject(whose=Whose.VISITOR, how=how) for how in How]])
def test_persons_are_not_shared_by_files(lake: Lake, subject: Subject | None) -> None:
    kind = Classification.PUBLIC if subject else Classification.PERSONAL
    login = Column(name="login", type="STRING", description="Login", subject=subject, classification=kind)
    with pytest.raises(PlatformError, match="by login; a manifest cannot leave columns out"):
        manifest.share(lake, replace(PAGES, columns=(*PAGES.columns, login)))
    assert manifest.shared_files(lake, PAGES.dataset) == set()


def test_rows_that_are_marked_as_removed_are_not_shared(spark: Any, tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    path = lake.path(PAGES.dataset)
    rows = spark.range(0, 10, 1, 1).selectExpr("'mon' AS day", "concat('/', id) AS page", "id AS views")
    rows.write.format("delta").partitionBy("day").option("delta.enableDeletionVectors", "true").save(path)
    assert manifest.share(lake, PAGES).rows == 10
    spark.sql(f"DELETE FROM delta.`{path}` WHERE views = 3")
    with pytest.raises(PlatformError, match="marked as removed"):
        manifest.share(lake, PAGES)
    spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
    assert manifest.share(lake, PAGES).rows == 9
    # It lists what Delta's own manifest of the table lists, which Trino and Presto read.
    spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    theirs, ours = Path(path, "_symlink_format_manifest"), manifest.location(lake, PAGES.dataset).resolve()
    assert listed(ours) == listed(theirs)


def listed(folder: Path) -> dict[str, list[str]]:
    files = {str(file.relative_to(folder)): file.read_text("utf-8").splitlines() for file in folder.rglob(MANIFEST)}
    return {name: sorted(urlsplit(line).path for line in lines) for name, lines in files.items()}
