import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

from blogdata.contract.partitions import Grain
from blogdata.landing.readiness_marker import Lack, mark, overdue, scan

NOW = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def land(table: Path, key: str, *names: str, content: str = "{}\n") -> Path:
    folder = table / f"date={key[:10]}" / (f"hour={key[11:]}" if len(key) > 10 else "")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(content)
    return folder


def test_a_partition_is_ready_only_when_marked(tmp_path: Path) -> None:
    """The naive way, by the files that are there, takes half a delivery."""
    folder = land(tmp_path, "2026-01-05T07", ".a.json.partial", "_temporary", "part-0.json")
    (half,) = scan(tmp_path, Grain.HOUR)
    assert (half.key, half.ready, [file.name for file in half.files]) == ("2026-01-05T07", False, ["part-0.json"])
    land(tmp_path, "2026-01-05T07", "part-1.json")
    mark(folder)
    mark(land(tmp_path, "2026-01-05T08", ".a.json.partial"))
    whole, empty = scan(tmp_path, Grain.HOUR)
    assert (whole.ready, len(whole.files), empty.ready, empty.files) == (True, 2, True, ())


def test_unflagged_data_is_overdue_after_its_deadline(tmp_path: Path) -> None:
    land(tmp_path, "2026-01-05T09", "a.json")
    mark(land(tmp_path, "2026-01-05T08", "a.json"))
    land(tmp_path, "2026-01-05T07")
    land(tmp_path, "2026-01-05T11", "a.json")
    land(tmp_path, "2026-01-05T99", "a.json")
    partitions = scan(tmp_path, Grain.HOUR)
    late = overdue(partitions, Grain.HOUR, now=NOW, deadline=timedelta(hours=1))
    assert [partition.key for partition in late] == ["2026-01-05T09"]
    assert overdue(partitions, Grain.HOUR, now=NOW, deadline=timedelta(hours=2)) == []


def test_a_file_after_the_flag_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = land(tmp_path, "2026-01-05T07", "a.json")
    mark(folder)
    (before,) = scan(tmp_path, Grain.HOUR)
    (folder / "a.json").chmod(0o640)
    os.link(folder / "a.json", folder / ".linked")
    (same,) = scan(tmp_path, Grain.HOUR)
    assert same.fingerprint == before.fingerprint, "another permission or link"
    land(tmp_path, "2026-01-05T07", "b.json")
    after_flag = (folder / "_SUCCESS").stat().st_mtime_ns + 1
    os.utime(folder / "b.json", ns=(after_flag, after_flag))
    (after,) = scan(tmp_path, Grain.HOUR)
    assert after.fingerprint != before.fingerprint


def without_flags(table: Path, *, minutes: float = 60) -> dict[str, Lack | None]:
    """Return what each hour lacks if its producer writes no flag, at a number of minutes from now."""
    now = datetime.now(timezone.utc) + timedelta(minutes=minutes)
    return {partition.key: partition.lacks for partition in scan(table, Grain.HOUR, convention="next_exists", now=now)}


def test_without_flags_a_later_hour_completes_an_hour(tmp_path: Path) -> None:
    for key in ("2026-01-05T07", "2026-01-05T09"):
        land(tmp_path, key, "a.json")
    assert without_flags(tmp_path) == {"2026-01-05T07": None, "2026-01-05T09": Lack.SUCCESSOR}
    # A folder made in advance, in the future or without a valid time completes no other hour.
    land(tmp_path, "2026-01-05T10")
    for strange in ("2099-01-05T13", "2026-01-05T99"):
        land(tmp_path, strange, "a.json")
    assert without_flags(tmp_path)["2026-01-05T09"] is Lack.SUCCESSOR
    assert without_flags(tmp_path / "absent") == {}


def test_without_flags_an_hour_waits_for_quiet(tmp_path: Path) -> None:
    earlier, _ = (land(tmp_path, f"2026-01-05T{hour}", "a.json") for hour in ("07", "08"))
    os.utime(earlier / "a.json", (0, 0))  # As after `rsync -t`, `cp -p` or tar.
    for minutes, lacks in ((1, Lack.QUIET), (6, None), (-1, Lack.QUIET)):
        assert without_flags(tmp_path, minutes=minutes)["2026-01-05T07"] is lacks
    mark(earlier)
    assert without_flags(tmp_path, minutes=1)["2026-01-05T07"] is None, "a flag counts as a quiet period does"
