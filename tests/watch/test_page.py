"""A single HTML file that loads nothing, executes no data, and shows the figures of the JSON output."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import published
from blogdata.cli import report_command
from blogdata.cli.main import app
from blogdata.cli.output import Outcome
from blogdata.contract.publication import Entry
from blogdata.landing.readiness_marker import ENDED
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.ledger.ledger import LedgerLine
from blogdata.operate import config
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch import report
from blogdata.watch.data_part import Freshness, state_of
from blogdata.watch.report import Report
from blogdata.watch.report_page import figure as in_words
from blogdata.watch.report_page import number
from page_view_rows import START, View, random_views, write
from quality.contracts import EVERY

NOW = datetime(2026, 4, 5, tzinfo=timezone.utc)
SOON = datetime(2026, 1, 20, tzinfo=timezone.utc)
ENTRY = Entry(dataset="silver.visits", partition="2026-01-05T00", version=1, rows_in=10, rows_out=8, reasons={})
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\u2028</script>\u2029",
    "\"'><svg onload=alert(3)>",
    "javascript:alert(4)",
    '=HYPERLINK("http://evil.example")',
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "&lt;b&gt;",
)
LOADING = {"src", "href", "action", "data", "poster", "srcset", "formaction", "background", "ping", "xlink:href"}


class Parsed(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def made(lake: LakeResource, now: datetime = NOW) -> Report:
    return report.compute(config.load({"BLOGDATA_HOME": str(lake.landing_path.parent)}), now=now)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeResource:
    found = published.deployment(tmp_path_factory.mktemp("home"))
    places = ("visit", "visitor", "page", "host", "browser", "device")
    odd = [View(time=START, **dict.fromkeys(places, name)) for name in HOSTILE]
    write(found.lake, [*odd, *random_views(40 * 24, seed=5)])
    published.bronze(found.lake, {"2026-01-05T00": {"2026-01-05T00": 3}})
    return found


@pytest.fixture(scope="module")
def page(lake: LakeResource) -> str:
    return made(lake).html()


def test_the_page_loads_nothing_and_only_its_own_script_runs(page: str) -> None:
    parsed = Parsed(page)
    for tag, attributes in parsed.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        for name, value in attributes.items():
            assert name not in LOADING or (tag, name) == ("a", "href"), (tag, name)
            assert not name.startswith("on")
            assert name != "style"
            if (tag, name) == ("a", "href"):
                assert str(value).startswith("#")
    assert "@import" not in page
    assert "url(" not in page
    (policy,) = [str(attributes["content"]) for _, attributes in parsed.tags if attributes.get("http-equiv")]
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert page.count("<script") == page.count("</script") == 1


def test_a_hostile_name_is_only_text(page: str) -> None:
    parsed = Parsed(page)
    shown = {text.strip() for text in parsed.texts["span"]}
    for name in HOSTILE:
        printable = name.replace("\u2028", "\N{REPLACEMENT CHARACTER}").replace("\u2029", "\N{REPLACEMENT CHARACTER}")
        assert printable in shown
    assert "\u2028" not in page
    assert "alert(1)" not in " ".join(parsed.texts["script"])
    assert "visitor-" not in page, "nobody is named"
    assert "visit-1" not in page


def test_the_page_and_the_json_say_the_same(lake: LakeResource, page: str) -> None:
    figures: Any = made(lake).as_json()
    shown = {text.strip() for part in Parsed(page).texts.values() for text in part}
    for period in figures["blog"]["periods"]:
        for figure in period["figures"]:
            assert in_words(figure["value"], figure["unit"]) in shown
        for ranking in period["rankings"]:
            for row in ranking["rows"]:
                assert row["name"] in shown
                assert {number(value) for value in row["values"]} <= shown
    for dataset in figures["data"]["datasets"]:
        assert dataset["dataset"] in shown
        assert number(dataset["rows_in"]) in shown


def test_the_figures_of_the_ledger_are_the_ledgers(lake: LakeResource) -> None:
    states = {state.dataset: state for state in made(lake).data.datasets}
    for name, contract in EVERY.items():
        lines = ledger.audit(lake.lake, EventLog(lake.lake), contract)
        if name not in states:
            assert lines == [], "only what was never published is not shown"
            continue
        rows = [(line.entry.rows_in, line.entry.rows_out, not line.balanced) for line in lines]
        totals = tuple(map(sum, zip(*rows, strict=True))) or (0, 0, 0)
        assert (states[name].rows_in, states[name].rows_out, states[name].unbalanced) == totals
    # These tables have fewer rows than their commits record.
    assert states["bronze.visits"].unbalanced == 1
    assert states["bronze.visits"].problems == ["2026-01-05T00: 3 rows were published but 1 are in the table"]


def test_punctual_publications_may_have_old_data(tmp_path: Path) -> None:
    """One figure is the time of publication, the other the age of the hours in it; a simulation misses nothing."""
    lake, now = published.deployment(tmp_path), datetime.now(timezone.utc)
    published.bronze(lake.lake, {"2026-01-05T22": {"2026-01-05T22": 3}})
    page = made(lake, now).html()
    assert "Published in time" in page
    assert 'Data until</span><b><time datetime="2026-01-05T23:00:00' in page
    assert {one.dataset: one.freshness for one in made(lake, now).data.datasets}["bronze.visits"] == "in time"
    later = now + timedelta(hours=3)
    assert {one.dataset: one.freshness for one in made(lake, later).data.datasets}["bronze.visits"] == "late"
    (lake.landing_path / ENDED).write_text("2026-01-06T00:00:00+00:00")
    assert {one.dataset: one.freshness for one in made(lake, later).data.datasets}["bronze.visits"] == "in time"


def test_an_empty_deployment_has_a_page_too(tmp_path: Path) -> None:
    found = made(published.deployment(tmp_path))
    assert not found.has_anything
    assert "No page view is published yet." in found.html()


def test_the_page_omits_what_has_no_source(tmp_path: Path) -> None:
    lake = published.deployment(tmp_path)
    write(lake.lake, random_views(14 * 24, seed=5))
    published.land(lake, "visits", "2026-01-05T00", {"a.json": "{}"})
    page = made(lake).html()
    shown = set(re.findall(r'<tr id="([\w.]+)"', page))
    # The visits have landed; users, ads and streamed tables have no source.
    assert {"bronze.visits", "silver.visits", "silver.late_visits", "gold.sessions_daily"} <= shown
    assert not {name for name in shown if name.endswith("_live") or "ad" in name.split(".")[1].split("_")}
    assert not shown & {"bronze.users", "silver.devices", "gold.campaign_stats"}


@pytest.mark.parametrize(
    ("dataset", "hours", "state"),
    [
        ("silver.visits", 3, Freshness.FRESH),  # the hour itself plus the promised two hours
        ("silver.visits", 3.1, Freshness.LATE),
        ("gold.page_stats", 30.1, Freshness.LATE),  # the day itself plus the promised six hours
        ("silver.users", 48.1, Freshness.LATE),  # a table without partitions: one day plus the promised day
        ("silver.late_visits", 9999, Freshness.UNPROMISED),
    ],
)
def test_a_dataset_is_late_after_its_promise(dataset: str, hours: float, state: Freshness) -> None:
    times = (SOON - timedelta(hours=hours), SOON - timedelta(days=9999))
    lines = [LedgerLine(entry=replace(ENTRY, committed_at=at), rows_there=8, problem=None) for at in times]
    assert state_of(EVERY[dataset], lines, SOON).freshness is state


def test_unpublished_datasets_are_not_late() -> None:
    assert state_of(EVERY["silver.visits"], [], SOON).freshness is Freshness.NEVER


def said(home: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["report", *arguments], env={"BLOGDATA_HOME": str(home)})
    return done.exit_code, done.stdout


def test_the_page_goes_where_it_should(lake: LakeResource, tmp_path: Path) -> None:
    home = lake.landing_path.parent
    elsewhere = tmp_path / "pages" / "today.html"
    assert said(home, "--out", str(elsewhere)) == (0, f"{elsewhere}\n")
    assert elsewhere.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_prints_the_figures_and_writes_no_page(lake: LakeResource) -> None:
    home = lake.landing_path.parent
    (home / "report.html").unlink(missing_ok=True)
    code, out = said(home, "--json", "--days", "2")
    assert code == 0
    assert not (home / "report.html").exists()
    assert json.loads(out)["blog"]["since"] >= "2026-02-12"


def test_a_report_that_fails_is_a_warning(lake: LakeResource) -> None:
    home = lake.landing_path.parent
    settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
    assert report_command.made_after_a_run(settings, Outcome(runs=1)) == []
    assert (home / "report.html").is_file()
    (home / "report.html").unlink()
    (home / "report.html").mkdir()
    (warning,) = report_command.made_after_a_run(settings, Outcome(runs=1))
    (home / "report.html").rmdir()
    assert warning.startswith("the report was not made: ")
