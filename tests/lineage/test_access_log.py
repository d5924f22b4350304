"""A blog's access log: each of its lines becomes a page view or is filtered by name, as GoAccess counts them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

import blog_log
from blogdata.cli.main import app
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import split_all
from blogdata.watch import report
from blogdata.watch.report import Report
from lineage.conftest import Deploy
from lineage.deployment import Deployment

pytestmark = pytest.mark.campaign
VIEWS = len(blog_log.VIEWS)
ONCE = [view for view in blog_log.VIEWS if not view.repeats]
UNIQUE, DUPLICATES = len(ONCE), 2
OF_VISITS = [[*views] for _, views in groupby(sorted(ONCE, key=lambda view: view.visit), key=lambda view: view.visit)]
VISITS = len(OF_VISITS)
LOOKED_AT = ("silver.sessions", "gold.page_stats", "gold.referral_stats", "gold.requests_daily", "gold.sessions_daily")
"""What the tests and the report look at; the rest of gold has its own tests."""


@pytest.fixture(scope="module")
def blog(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The processed log, landed while its server rotated it."""
    deployment = deploy("log")
    land_while_rotated(deployment.landing, tmp_path_factory.mktemp("server"))
    assert deployment.run(for_=LOOKED_AT).problems == []
    return deployment


def land_while_rotated(landing: Path, server: Path) -> None:
    """Land the log repeatedly while its server writes and rotates it, in each way of rotating."""
    current, lines = server / "access.log", blog_log.LINES
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for step, begin in enumerate(range(0, len(lines), 225)):
        with current.open("ab") as log:
            log.writelines(lines[begin : begin + 200])
        land_logs(landing, *sorted(map(str, server.iterdir())))
        for _ in split_all(landing, formats(), now=now + timedelta(hours=step)):
            pass
        with current.open("ab") as log:
            log.writelines(lines[begin + 200 : begin + 225])
        if step % 4 == 1:
            current.rename(server / f"access.log-{step}")
        elif step % 4 == 3:
            (server / f"access.log-{step}.gz").write_bytes(gzip.compress(current.read_bytes()))
            os.truncate(current, 0)
    land_logs(landing, *map(str, server.iterdir()))


def land_logs(landing: Path, *files: str) -> None:
    landed = CliRunner().invoke(app, ["land", "logs", *files], env={"BLOGDATA_HOME": str(landing.parent)})
    assert landed.exit_code == 0, landed.output


def test_the_ledger_has_the_count_of_each_filter(blog: Deployment) -> None:
    assert blog.problems() == []
    entries, reasons = blog.published("silver.visits").values(), Counter[str]()
    for entry in entries:
        reasons.update(entry.reasons)
    assert {name: reasons[f"filtered.{name}"] for name in blog_log.FILTERED} == blog_log.FILTERED
    assert reasons["duplicates"] == DUPLICATES
    assert sum(entry.rows_in for entry in entries) == len(blog_log.LINES)
    assert sum(entry.rows_out for entry in entries) == UNIQUE


@pytest.fixture
def reported(blog: Deployment) -> Report:
    return report.compute(blog.settings)


def in_all(found: Report, name: str) -> dict[str, int]:
    """Sum the page views of a ranking over the whole log, including the rows listed apart."""
    assert found.blog is not None
    (ranking,) = [each for each in found.blog.periods[-1].rankings if each.name == name]
    return {gold_name(row.name): row.values[0] for row in (*ranking.rows, *ranking.apart)}


def gold_name(shown: str) -> str:
    return "direct" if shown == "no referrer" else shown.removesuffix(", this blog")


def test_the_report_has_the_figures_of_gold(blog: Deployment, reported: Report) -> None:
    assert reported.blog is not None
    figures = {figure.name: figure.value for figure in reported.blog.periods[-1].figures}
    assert (figures["views"], figures["visits"]) == (UNIQUE, VISITS)
    (day,) = [period for period in reported.blog.periods if period.name == "1"]
    for dataset, column in (("gold.page_stats", "page"), ("gold.referral_stats", "referral_host")):
        rows = blog.rows(dataset, "event_date", column, "events", "visits", "users")
        gold = {name: counts for date, name, *counts in rows if date == day.first[:10]}
        (ranking,) = [each for each in day.rankings if each.name == column]
        ranked = (*ranking.rows, *ranking.apart)
        assert len(ranked) + ranking.others == len(gold)
        assert {gold_name(row.name): list(row.values) for row in ranked}.items() <= gold.items()
        if column == "referral_host":
            own = {f"{host}, this blog" for host in blog_log.OWN_HOSTS}
            assert {row.name for row in ranking.apart} == {"no referrer", *own}
    left_out = {state.dataset: state.reasons for state in reported.data.datasets}["silver.visits"]
    filtered = {f"filtered.{name}": rows for name, rows in blog_log.FILTERED.items()}
    assert left_out == {**filtered, "duplicates": DUPLICATES}
    assert not any(state.unbalanced for state in reported.data.datasets)
    assert [(one["severity"], one["source"], one["dataset"]) for one in reported.data.findings] == [
        ("warning", "flow", "bronze.visits")
    ], "the log ended long ago"


def goaccess(lines: Iterable[bytes], folder: Path, *options: str) -> Any:
    """Return GoAccess's counts for the lines of a log."""
    (folder / "counted.log").write_bytes(b"".join(lines))
    fixed = ("--log-format=COMBINED", "--no-query-string", "--no-global-config", "-o", "counted.json")
    subprocess.run(["goaccess", "counted.log", *fixed, *options], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "counted.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(shutil.which("goaccess") is None, reason="needs goaccess")
def test_all_requests_are_those_that_goaccess_counts(blog: Deployment, tmp_path: Path) -> None:
    counted = goaccess(blog_log.LINES, tmp_path)
    rows = blog.rows("gold.requests_daily", "event_date", "status", "path", "requests", "bytes")
    days, statuses, missing = Counter[str](), Counter[str](), Counter[str]()
    for day, status, path, requests, _ in rows:
        days[day.replace("-", "")] += requests
        statuses[status] += requests
        if status == "404":
            missing[path] += requests
    general = counted["general"]
    assert days.total() == general["valid_requests"] == len(blog_log.LINES)
    assert general["failed_requests"] == 0
    assert sum(sent for *_, sent in rows) == general["bandwidth"] == sum(one.size for one in blog_log.REQUESTS)
    assert days == {row["data"]: row["hits"]["count"] for row in counted["visitors"]["data"]}
    codes = [item for row in counted["status_codes"]["data"] for item in row["items"]]
    assert statuses == {item["data"][:3]: item["hits"]["count"] for item in codes}
    theirs = Counter[str]()
    for row in counted["not_found"]["data"]:
        theirs[row["data"]] += row["hits"]["count"]
    assert missing == theirs
    assert theirs.total() == statuses["404"] > 0


@pytest.mark.skipif(shutil.which("goaccess") is None, reason="needs goaccess")
def test_more_requests_are_crawlers_than_goaccess_leaves_out(blog: Deployment, tmp_path: Path) -> None:
    rows = [(raw + b"\n", crawler) for raw, crawler in blog.rows("bronze.visits", "raw", "crawler")]
    of_crawlers, others = [raw for raw, name in rows if name is not None], [raw for raw, name in rows if name is None]
    left = [
        goaccess(lines, tmp_path, "--ignore-crawlers")["general"]["valid_requests"] for lines in (of_crawlers, others)
    ]
    # Besides crawlers by name: feed readers, tools, missing agents, and clients that read robots.txt.
    assert 0 < left[0] < len(of_crawlers)
    assert left[1] == len(others)


@pytest.mark.skipif(shutil.which("goaccess") is None, reason="needs goaccess")
def test_the_report_counts_what_goaccess_counts(blog: Deployment, reported: Report, tmp_path: Path) -> None:
    rows = blog.rows("bronze.visits", "raw", "reasons", "filtered_by")
    counted = goaccess((raw + b"\n" for raw, reasons, name in rows if not reasons and name is None), tmp_path)
    # GoAccess counts both lines of a repeated request.
    assert counted["general"]["valid_requests"] == VIEWS == UNIQUE + DUPLICATES
    pages: Counter[str] = Counter()
    for panel in ("requests", "static_requests", "not_found"):
        for row in counted.get(panel, {}).get("data", []):
            pages[row["data"]] += row["hits"]["count"]
    hosts = {row["data"]: row["hits"]["count"] for row in counted["referring_sites"]["data"]}
    ours = in_all(reported, "page")
    assert differing(ours, pages) == {blog_log.REPEATED: DUPLICATES}
    pages[blog_log.REPEATED] -= DUPLICATES
    assert list(ours)[:8] == [name for name, _ in sorted(pages.items(), key=lambda one: (-one[1], one[0]))][:8]
    repeated_from = urlsplit(blog_log.REPEATED_FROM).hostname
    direct = sum(view.referrer == "-" for view in ONCE)
    assert differing(in_all(reported, "referral_host"), hosts) == {"direct": -direct, repeated_from: DUPLICATES}
    # GoAccess counts a visitor once per day.
    assert reported.blog is not None
    days = reported.blog.periods[-1].chart
    theirs = {row["data"]: row["visitors"]["count"] for row in counted["visitors"]["data"]}
    assert dict(zip((key.replace("-", "") for key in days.keys), days.lines["visitors"], strict=True)) == theirs
    assert sum(theirs.values()) == counted["general"]["unique_visitors"]
    assert theirs == Counter(day for day, _ in {(f"{view.time:%Y%m%d}", view.client) for view in ONCE})
    # Each of them has a session that day, and another after each silence of half an hour.
    states = blog.rows("silver.sessions", "event_hour", "session_id", "user_id", "started_at", "ended_at")
    sessions = {session: (user, started, ended) for _, session, user, started, ended in sorted(states)}
    of_a_day = {(f"{moment:%Y%m%d}", user) for user, *moments in sessions.values() for moment in moments}
    assert Counter(day for day, _ in of_a_day) == theirs
    ended = Counter(f"{ended:%Y%m%d}" for *_, ended in sessions.values())
    assert ended == Counter(f"{max(view.time for view in views):%Y%m%d}" for views in OF_VISITS)


def differing(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    """Return by how much GoAccess's numbers are larger, where they differ."""
    return {name: theirs.get(name, 0) - count for name, count in ours.items() if theirs.get(name, 0) != count}
