"""Pseudo-Anonymizer: a rotation of the key of tokens that was killed goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from lineage.command_line import Said
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment, event
from lineage.tokens import OF_USERS, VISITS, WEEKLY, deliver, joined, marks, refused, replace_key, tokens
from quality.keys import VISITOR_KEY

__all__ = ["deploy"]
LOG = '192.0.2.{n} - - [05/Jan/2026:{at}:00 +0000] "GET {page} HTTP/1.1" 200 1 "-" "Mozilla/5.0 Firefox/120.0"'


def pages_of_visitors(made: Deployment) -> list[tuple[int, list[str]]]:
    """Return the number of visits and the pages of each visitor."""
    visits: dict[str, list[tuple[str, str]]] = {}
    for user, visit, page in made.rows(VISITS, "user_id", "visit_id", "page"):
        visits.setdefault(user, []).append((visit, page))
    return sorted((len({*dict(rows)}), sorted(page for _, page in rows)) for rows in visits.values())


@pytest.mark.campaign
def test_a_rotation_that_was_killed_goes_on(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = deploy("killed-rotation")
    monkeypatch.setenv("BLOGDATA_HOME", str(made.settings.home))
    wanted = [VISITS, *OF_USERS, WEEKLY]
    deliver(made, "2026-01-05", {"a": "ann", "b": "bob"})
    deliver(made, "2026-01-06", {"a": "eve", "b": "ann"})
    for hour, at in (("10", "10:50"), ("11", "11:10")):
        land_log(made, hour, at, 1, 2)
        made.land(f"2026-01-05T{hour}", [event(at, f"/of-{hour}")])
    assert made.run(for_=wanted).problems == []
    old, known, visitors = tokens(made), joined(made), pages_of_visitors(made)
    assert visitors == [(1, ["/10", "/11"])] * 2 + [(1, ["/of-10"]), (1, ["/of-11"])]
    weekly = "SELECT count(*), count(DISTINCT visit_id), count(DISTINCT user_id) FROM gold.visits_weekly"
    counted = made.asked(weekly)

    land_log(made, "12", "12:10", 1)
    key = replace_key(made, "another-key-of-the-same-version-" * 2)
    assert refused(made.run(for_=wanted).problems, VISITS)
    replace_key(made, key)
    killed_when(lambda: marks(made, VISITS) == {"2"}, made)
    assert marks(made, WEEKLY) == {"1"}, "it was killed in the middle"
    assert refused(made.run(select=[WEEKLY]).problems, WEEKLY), "nothing goes on by two keys"

    code, out, _ = Said(monkeypatch, capsys)("job", "rotate", f"key={VISITOR_KEY}")
    assert (code, "version 3 of" in out, "all published rows follow from version 2" in out) == (0, False, True)
    assert all(marks(made, dataset) == {"2"} for dataset in wanted)
    assert (joined(made), pages_of_visitors(made), made.asked(weekly)) == (known, visitors, counted)
    new = tokens(made)
    assert (len(new), old & new) == (len(old), set())
    ids = set(made.rows(VISITS, "visit_id"))
    assert set(made.rows("silver.visits_enriched", "visit_id")) == ids, "also of what was computed from them"
    (made.settings.home / "secrets" / VISITOR_KEY).unlink()
    deliver(made, "2026-01-07", {"a": "eve", "b": "ann"})
    versions = sorted(made.rows("silver.users", "user_id"))
    assert made.run(for_=wanted).problems == [], "the first version is needed by nobody"
    assert sorted(made.rows("silver.users", "user_id")) == versions, "nobody got another version"
    assert (2, ["/10", "/11", "/12"]) in pages_of_visitors(made)


def land_log(made: Deployment, hour: str, at: str, *visitors: int) -> None:
    lines = [LOG.format(n=n, at=at, page=f"/{hour}").encode() for n in visitors]
    made.land(f"2026-01-05T{hour}", lines, name="access.log")


def killed_when(reached: Callable[[], bool], made: Deployment) -> None:
    """Rotate the key in another process, and kill it as soon as something is reached."""
    command = [sys.executable, "-m", "blogdata", "job", "rotate", f"key={VISITOR_KEY}"]
    variables = {**os.environ, "BLOGDATA_HOME": str(made.settings.home)}
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
