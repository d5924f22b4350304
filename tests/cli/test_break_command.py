"""`blogdata break` breaks a copy, explains what happened, and counts lost rows; the original stays unchanged."""

from __future__ import annotations

import json
import random
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blogdata.cli import break_copy
from blogdata.cli.break_command import play
from blogdata.cli.break_figures import take
from blogdata.cli.break_scenes import ROWS, SCENES, Story
from blogdata.cli.main import main
from blogdata.cli.outcome import Outcome
from blogdata.cli.pipeline import Pipeline
from blogdata.errors import ConfigurationError
from blogdata.patterns.ingestion import readiness_marker
from blogdata.planning.plan import Plan
from blogdata.planning.snapshot import landed
from blogdata.publish.partitions import Grain
from blogdata.services import config
from lineage.conftest import Deploy, deploy
from lineage.deployment import OWN_SERVER, Deployment, event
from lineage.origins import three_hours

__all__ = ("deploy",)
HOURS = ("2026-01-05T10", "2026-01-05T11")
TAKEN_IN = ("bronze.dead_letters", "silver.late_visits", "silver.visits", "silver.sessions")


class Terminal:
    """Runs a command as a person types it; returns its exit code and its output."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = patch, capsys

    def __call__(self, *arguments: str, answers: str | None = None) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["blogdata", *arguments])
        if answers is not None:
            self._patch.setattr(sys, "stdin", Answers(answers))
        with pytest.raises(SystemExit) as ended:
            main()
        output = self._capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err


class Answers:
    """A person at a terminal who answers line by line."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.splitlines(keepends=True))

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1) -> str:
        return next(self._lines, "")


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path / "home"))
    for variable in ("BLOGDATA_LANDING", "BLOGDATA_LAKE", "SPARK_REMOTE", "BLOGDATA_SPARK_MODE"):
        monkeypatch.delenv(variable, raising=False)
    return Terminal(monkeypatch, capsys)


def test_every_way_to_break_it_is_listed(typed: Terminal) -> None:
    code, out, err = typed("break", "--list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[:-1]] == [scene.name for scene in SCENES]
    code, out, _ = typed("break", "--list", "--json")
    assert [each["name"] for each in json.loads(out)] == [scene.name for scene in SCENES]


def test_an_unknown_scene_is_refused_with_the_list(typed: Terminal) -> None:
    code, out, err = typed("break", "everything")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: no way to break it is called everything"
    assert "kill-writer" in err


def test_without_a_terminal_nothing_is_broken_unasked(typed: Terminal, tmp_path: Path) -> None:
    code, out, _ = typed("break", "bad-rows")
    assert (code, out.splitlines()) == (1, ["nothing was broken; to break the copy: --yes"])
    assert not (tmp_path / "home" / "break").exists()


def test_the_menu_breaks_nothing_after_a_no(typed: Terminal, tmp_path: Path) -> None:
    code, out, _ = typed("break", answers="0\n")
    assert code == 0
    assert "1  kill the Spark server" in out
    typed("break", answers="2\nn\n")
    assert not (tmp_path / "home" / "break").exists()


def test_changing_the_copy_keeps_the_original_unchanged(tmp_path: Path) -> None:
    original = Deployment.create(tmp_path / "home")
    file = original.land(HOURS[0], [event("10:05", "/a")])
    log = original.settings.lake / "silver" / "visits" / "_delta_log" / "_last_checkpoint"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    copied = break_copy.copy(original.settings, "bad-rows", seed=1)
    assert not copied.simulated
    there = copied.settings.landing / file.relative_to(original.landing)
    assert there.samefile(file)
    in_the_copy = copied.settings.lake / log.relative_to(original.settings.lake)
    in_the_copy.write_text("changed in place")
    assert log.read_text() == "{}"
    again = break_copy.copy(original.settings, "bad-rows", seed=1)
    assert (again.settings.lake / log.relative_to(original.settings.lake)).read_text() == "{}"


def test_a_copy_has_flags_but_no_outward_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness_marker, "QUIET", timedelta(0))
    original = Deployment.create(tmp_path / "home")
    (original.settings.home / "blogdata.toml").write_text('[landing]\nready = "next_exists"\n')
    settings = config.load(overrides={"BLOGDATA_HOME": str(original.settings.home)})
    for hour in HOURS:
        file = original.land(hour, [event("10:05", "/a")])
        file.with_name("_SUCCESS").unlink()
    file.with_name("passwd.json").symlink_to("/etc/passwd")
    file.with_name("same.json").symlink_to(file)
    original.landing.joinpath("users").symlink_to("/etc")
    copied = break_copy.copy(settings, "bad-rows", seed=1).settings
    assert [hour.key for hour in landed(copied.landing, "visits", Grain.HOUR)] == [HOURS[0]]
    there = {path.name: path.is_symlink() for path in (copied.landing / "visits").rglob("*.json")}
    assert there == {"visits.json": False, "same.json": False}
    assert not (copied.landing / "users").exists()
    assert copied.ready == "flag"


@pytest.fixture(scope="module")
def blog(deploy: Deploy) -> Deployment:
    """Two published hours; one session begins in the first and continues in the second."""
    made = deploy("blog")
    made.land(HOURS[0], [event("10:05", "/a"), event("10:20", "/b"), event("10:20", "/b")])
    made.land(HOURS[0], [event("10:50", "/c")], name="spanning.json")
    made.land(HOURS[1], [event("11:10", "/c"), event("11:55", "/b")])
    assert made.run().problems == []
    return spanned(made)


@pytest.fixture(scope="module")
def published(deploy: Deploy) -> Deployment:
    """Three published hours with rows in every table, and sessions that continue from hour to hour."""
    return spanned(deploy.published("published", three_hours))


def spanned(deployment: Deployment) -> Deployment:
    sessions = deployment.rows("silver.sessions", "session_id")
    assert len(sessions) > len(set(sessions)), "one of them has rows in two hours"
    return deployment


def scene(blog: Deployment, name: str) -> dict[str, Any]:
    (chosen,) = [each for each in SCENES if each.name == name]
    versions = blog.versions()
    found = play(blog.settings, chosen, seed=3, quiet=True)
    assert found["verdict"] == {"fine": True, "rows_lost": 0, "rows_doubled": 0, "problems": []}
    assert found["runs"][0]["planned"] == []
    assert blog.versions() == versions
    assert len(list(blog.landing.rglob("*.json"))) == 3
    return found


class Hurried(Story):
    """A story whose scenes start no runs: everything they land is processed together at the end."""

    def run(self, why: str, plan: Plan | None = None) -> Outcome:
        self.narrate(why)
        return Outcome()


def test_the_scenes_together_lose_and_double_nothing(published: Deployment) -> None:
    # Running each scene separately would be a campaign. Here all are counted together.
    copied = break_copy.copy(published.settings, "together", seed=3).settings
    story = Hurried(settings=copied, draw=random.Random(3), say=lambda text: None)
    landing = [scene for scene in SCENES if not scene.own_server]
    for chosen in sorted(landing, key=lambda scene: scene.name == "dropped-column"):
        chosen.play(story)
    # As far as one table of each kind: by arrival, by event, and by what the hour before left behind.
    assert Pipeline(copied, quiet=True).run(for_=TAKEN_IN).problems == []
    found = take(copied)
    assert (found.lost, found.doubled, found.problems, found.waiting) == (0, 0, (), 0)
    assert found.landed == take(published.settings).landed + len(landing) * ROWS


@pytest.mark.campaign
def test_bad_rows_become_dead_letters_with_their_reasons(blog: Deployment) -> None:
    found = scene(blog, "bad-rows")
    assert found["before"]["letters"] == {}
    reasons = {
        "truncated", "not_json", "wrong_type:user_id", "missing_field:page", "invalid_time:event_time",
        "impossible_time", "not_utf8", "several_objects",
    }  # fmt: skip
    assert set(found["after"]["letters"]) == reasons
    assert found["after"]["landed"] == found["before"]["landed"] + 20
    assert found["after"]["accounts"]["silver.visits"] == found["before"]["accounts"]["silver.visits"]


@pytest.mark.campaign
def test_late_rows_reach_the_hours_they_are_of(blog: Deployment) -> None:
    found = scene(blog, "late-rows")
    taken = found["runs"][1]
    assert taken["planned"][0]["partitions"] == ["2026-01-05T11"]
    # The plan lists arrivals; which older hours they touch is found when they are read.
    assert HOURS[0] in taken["published_again"]["silver.visits"]
    assert HOURS[0] in taken["published_again"]["silver.visits_enriched"]
    before, after = (found[when]["accounts"] for when in ("before", "after"))
    for dataset, rows in (
        ("silver.visits", "rows_out"),
        ("gold.visits_weekly", "rows_out"),
        ("silver.late_visits", "rows_in"),
    ):
        assert after[dataset][rows] == before[dataset][rows] + 20
    assert found["after"]["letters"] == {}


@pytest.mark.campaign
def test_rows_without_a_dropped_field_become_dead_letters(blog: Deployment) -> None:
    found = scene(blog, "dropped-column")
    assert len(found["runs"]) == 2
    assert found["runs"][1]["problems"] == []
    assert found["after"]["letters"] == {"missing_field:user_id": 20}
    before, after = (found[when]["accounts"] for when in ("before", "after"))
    assert after["bronze.visits"]["rows_out"] == before["bronze.visits"]["rows_out"] + 20
    assert after["silver.visits"] == before["silver.visits"]


@pytest.mark.campaign
def test_a_stopped_clock_delays_rows_but_loses_none(blog: Deployment) -> None:
    found = scene(blog, "stopped-clock")
    waiting, taken = found["runs"][1:]
    assert waiting["planned"] == []
    told = "visits: 1 hour is overdue, due 1 h after the end: 2026-01-05T12 (data without _SUCCESS)"
    assert any(line.startswith(told) for line in found["happened"])
    assert taken["planned"][0]["partitions"] == ["2026-01-05T12"]
    # Their events belong to the hour in which the clock stopped, so that hour runs again.
    assert taken["published_again"]["silver.visits"] == ["2026-01-05T11"]
    before, after = (found[when]["accounts"]["silver.visits"]["rows_out"] for when in ("before", "after"))
    assert after == before + 20


@pytest.mark.campaign
def test_a_publication_whose_server_is_killed_appears_once(published: Deployment, tmp_path: Path) -> None:
    home = shutil.copytree(published.settings.home, tmp_path / "home", ignore=shutil.ignore_patterns("break"))
    (home / "blogdata.toml").write_text(OWN_SERVER, encoding="utf-8")
    settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
    # This seed draws gold.page_stats, which few datasets depend on; its server is started twice.
    found = play(settings, SCENES[0], seed=7, quiet=True)
    assert found["verdict"] == {"fine": True, "rows_lost": 0, "rows_doubled": 0, "problems": []}
    assert any(text.startswith("gold.page_stats") for text in found["happened"])
    (killed,) = [text for text in found["happened"] if "is killed" in text]
    assert "are written, its log entry not" in killed
    (retried,) = found["runs"][1]["retried"]
    assert "The Spark server went away during the work" in retried
    assert found["runs"][1]["problems"] == []
    assert found["happened"][-1].endswith("has 1 new version")
    assert found["after"]["accounts"] == found["before"]["accounts"]


def test_a_foreign_spark_server_is_not_killed(published: Deployment) -> None:
    with pytest.raises(ConfigurationError, match="only a Spark server of this deployment's own"):
        play(published.settings, SCENES[0], seed=1, quiet=True)
