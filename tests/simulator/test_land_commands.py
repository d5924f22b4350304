"""`blogdata land` reports its actions, refuses invalid input, and never overwrites files."""

from __future__ import annotations

import gzip
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from blogdata.cli import land_commands
from blogdata.cli.land_commands import app
from blogdata.errors import ConfigurationError, PlatformError

LINE = b'1.2.3.4 - - [05/Jan/2026:03:04:05 +0000] "GET /%s HTTP/1.1" 200 1 "-" "-"\n'


def typed(landing: Path, *words: str, piped: bytes | None = None) -> Result:
    """Type `blogdata land` for a landing zone."""
    places = {"BLOGDATA_HOME": str(landing.parent / "home"), "BLOGDATA_LANDING": str(landing)}
    return CliRunner().invoke(app, words, env=places, input=piped)


def simulate(landing: Path, *more: str) -> tuple[str, BaseException | None]:
    result = typed(landing, "simulate", "--days", "1", "--visits-per-day", "200", "--seed", "3", *more)
    return result.stdout, result.exception


def test_simulate_prints_its_truth_and_changes_nothing_twice(tmp_path: Path) -> None:
    first, error = simulate(tmp_path, "--json")
    assert error is None
    figures = json.loads(first)
    assert figures["lines"] == figures["valid"] + figures["dead"]
    assert figures["valid"] == figures["unique"] + figures["duplicates"]
    assert figures["ads"]["lines"] == figures["ads"]["valid"] + figures["ads"]["dead"] > 0
    assert not figures["already_there"]
    assert json.loads(simulate(tmp_path, "--json")[0])["already_there"]
    assert "nothing was changed" in simulate(tmp_path)[0]


def test_hours_are_added_to_a_simulation(tmp_path: Path) -> None:
    def added(*options: str) -> str:
        result = typed(tmp_path, "simulate", *options)
        return result.stdout if result.exception is None else type(result.exception).__name__

    assert added("--hours", "1") == "ConfigurationError", "there is nothing to add to"
    assert simulate(tmp_path, "--begin", "2026-01-05")[1] is None
    assert "added: 2026-01-06T00\n" in added("--hours", "1")
    assert "added: 2026-01-06T01 … 2026-01-07T00\n" in added("--hours", "24")
    assert json.loads(added("--hours", "2", "--json"))["added"] == ["2026-01-07T01", "2026-01-07T02"]
    assert "nothing was changed" in simulate(tmp_path)[0]
    for wrong in (("--hours", "1", "--begin", "2026-01-05"), ("--seed", "4"), ()):
        assert added(*wrong) == "ConfigurationError"


def test_simulated_days_have_just_ended_and_stay_the_same_tomorrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(land_commands, "_today", lambda: date(2026, 3, 2))
    assert simulate(tmp_path)[1] is None
    assert [folder.name for folder in tmp_path.glob("visits/*")] == ["date=2026-03-01"]
    monkeypatch.setattr(land_commands, "_today", lambda: date(2026, 3, 3))
    assert "nothing was changed" in simulate(tmp_path)[0]
    assert isinstance(simulate(tmp_path, "--begin", "2026-03-02")[1], PlatformError)


def test_logs_land_once_with_their_formats_and_missing_files_are_refused(tmp_path: Path) -> None:
    line, landing = LINE % b"one", tmp_path / "landing"
    (tmp_path / "main.log").write_bytes(b"\xef\xbb\xbf" + line.replace(b"\n", b' "-"\n') * 2 + line)
    (tmp_path / "vhost.log").write_bytes(b"blog.example.org:443 " + line)
    (tmp_path / "empty.log").touch()
    files = [str(tmp_path / name) for name in ("main.log", "vhost.log", "empty.log")]
    assert f"{files[0]}: format main, combined; landed" in typed(landing, "logs", *files).stdout.replace("\n", " ")
    assert (landing / "access_logs" / "vhost.log").read_bytes() == b"blog.example.org:443 " + line
    found = json.loads(typed(landing, "logs", *files, "--json").stdout)
    assert {row["file"]: (row["outcome"], row["formats"]) for row in found} == {
        files[0]: ("same", ["main", "combined"]),
        files[1]: ("same", ["vhost_combined"]),
        files[2]: ("empty", []),
    }
    refused = typed(landing, "logs", str(tmp_path / "absent.log"))
    assert isinstance(refused.exception, ConfigurationError)
    assert refused.exit_code != 0


def test_a_file_that_is_no_access_log_is_refused_and_the_others_land(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\n" + LINE % b"one")
    (tmp_path / "README.md").write_text("Not a log\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE % b"one")[:-12])
    # The damage is behind the bytes that show the format.
    (tmp_path / "far.gz").write_bytes(gzip.compress(b"".join(LINE % b"%d" % at for at in range(30_000)))[:-12])
    (tmp_path / "empty").touch()

    def landed(*names: str) -> tuple[Any, list[str]]:
        files = [str(tmp_path / name) for name in names]
        error = typed(tmp_path / "landing", "logs", *files).exception
        return error, sorted(path.name for path in tmp_path.glob("landing/*/[a-z]*"))

    refused, there = landed("README.md", "empty")
    assert isinstance(refused, ConfigurationError)
    assert (refused.where, there) == (str(tmp_path / "README.md"), [])
    assert "the first one is nearest to the format combined, but its time does not fit" in str(refused)
    assert "combined, common, " in str(refused)
    for damaged in ("cut.gz", "far.gz"):
        refused, there = landed(damaged)
        assert (refused.where, there) == (str(tmp_path / damaged), [])
        assert "the file cannot be read" in str(refused)
    refused, there = landed("README.md", "log", "cut.gz", "absent")
    assert (type(refused), there) == (ConfigurationError, ["log"])
    assert "3 files did not land" in str(refused)
    assert [str(tmp_path / name) for name in ("README.md", "cut.gz", "absent")] == refused.where.split(", ")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            b'{"remote_addr": "203.0.113.9", "time": "yesterday", "status": 200, "request": "GET / HTTP/1.1"}\n',
            "nearest to the format nginx_json, but its time does not fit",
        ),
        ((LINE % b"one").replace(b"+0000", b"+1930"), "nearest to the format combined, but its time does not fit"),
        (
            b"#Version: 1.0\n2026-01-05 03:04:05 ::1 GET /a - 443 - - - - ok\n",
            "nearest to the format iis, but its status",
        ),
        (b"17 " + LINE % b"one", "nearest to the format combined, but its address does not fit"),
    ],
)
def test_a_log_whose_lines_would_all_be_dead_letters_is_refused(tmp_path: Path, line: bytes, what: str) -> None:
    (tmp_path / "a.log").write_bytes(line * 9)
    command = (tmp_path / "landing", "logs", str(tmp_path / "a.log"))
    refused = typed(*command).exception
    assert isinstance(refused, ConfigurationError)
    assert (refused.where, what in refused.what) == (str(tmp_path / "a.log"), True)
    assert not list(tmp_path.glob("landing/*/*.log"))
    # One good line is enough: an access log may have odd ones.
    (tmp_path / "a.log").write_bytes(line * 9 + LINE % b"one")
    assert typed(*command).exception is None


def test_what_comes_through_a_pipe_lands_and_no_other_thing_than_a_file(tmp_path: Path) -> None:
    landing = tmp_path / "landing"

    def landed(piped: bytes) -> dict[str, str]:
        said = typed(landing, "logs", "-", "--json", piped=piped)
        assert said.exception is None, said.exception
        return {row["file"]: row["outcome"] for row in json.loads(said.stdout)}

    assert landed(LINE % b"piped" * 2) == {"-": "new"}
    assert landed(gzip.compress(LINE % b"piped" * 3)) == {"-": "grown"}
    assert [path.name for path in (landing / "access_logs").glob("*") if path.name != ".lock"] == ["piped.log"]
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path), str(tmp_path / "pipe"), "/dev/null"):
        refused = typed(landing, "logs", name).exception
        assert isinstance(refused, ConfigurationError)
        assert (refused.what, refused.where) == ("it is no file", name)


def test_formats_are_declared_by_settings_and_a_header_tells_the_order_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    header = "#Fields: date time c-ip cs-method cs-uri-stem sc-status"
    (tmp_path / "columns.log").write_text(f"#Software: IIS\n{header}\n2022-10-03 19:59:42 203.0.113.9 GET /a 200\n")
    (tmp_path / "own.log").write_text('200|203.0.113.9|1664827182.5|"GET /a HTTP/1.1"\n')
    command = ["logs", str(tmp_path / "columns.log"), str(tmp_path / "own.log"), "--json"]
    (tmp_path / "lacks.log").write_text((tmp_path / "columns.log").read_text().replace("c-ip", "X-Real-IP"))
    error = CliRunner().invoke(app, ["logs", str(tmp_path / "lacks.log")]).exception
    assert isinstance(error, ConfigurationError)
    assert "no column, or more than one, is the address of a request" in error.what
    assert not list(tmp_path.glob("landing/*/*.log"))
    own = '$status|$remote_addr|$msec|"$request"'
    (tmp_path / "blogdata.toml").write_text(f"[logs]\nformat = ['{header}', '{own}']\n")
    said = CliRunner().invoke(app, command)
    assert [row["formats"] for row in json.loads(said.stdout)] == [["declared"], ["declared"]]
    (tmp_path / "columns.log").write_text(f"{header} cs-host\n2022-10-03 19:59:42 203.0.113.9 GET /b 200 b.example\n")
    said = CliRunner().invoke(app, command)
    assert [row["formats"] for row in json.loads(said.stdout)] == [["declared"], ["iis"]]
    (tmp_path / "blogdata.toml").write_text("[logs]\nformat = 7\n")
    assert "write a text, or a list of texts" in str(CliRunner().invoke(app, command).exception)
