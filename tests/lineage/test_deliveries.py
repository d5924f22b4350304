"""Dead letters in a full load, and their corrections: neither removes other rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from blogdata.cli.main import main
from blogdata.cli.pipeline import Pipeline
from blogdata.lake.commit import WHOLE_TABLE
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event

HOUR, NEXT = "2026-01-05T10", "2026-01-05T11"
TIMES = {f"{name}_datetime": "2020-05-05T00:00:00Z" for name in ("registered", "first_connection", "last_connection")}
USERS = [json.dumps({"id": name, "login": name, "email": "a@example.org", **TIMES}).encode() for name in "abcd"]
OF_USERS = ("silver.users", "silver.users_current")
DEVICES = [b"type;full_name;version", b"PC;One;1", b"PC;Two;2", b"Phone;Three;3"]


def deliver(deployment: Deployment, file: str, lines: list[bytes]) -> None:
    path = deployment.landing / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    (path.parent / "_SUCCESS").touch()


def accepted(deployment: Deployment, *datasets: str) -> list[str]:
    return Pipeline(deployment.settings, quiet=True, accept="size").run(select=datasets).problems


def current(deployment: Deployment) -> list[str]:
    return sorted(user for user, valid_to in deployment.rows("silver.users", "user_id", "valid_to") if valid_to is None)


@pytest.fixture(scope="module")
def made(deploy: Deploy) -> Deployment:
    """A deployment without data; the tests go on from each other."""
    return deploy("deliveries")


def test_misnamed_and_future_deliveries_are_ignored(made: Deployment) -> None:
    # By name each of them would be the newest.
    for strange in ("2026-01-05.bad", "2026-1-6", "2099-01-01", "9999-12-31"):
        deliver(made, f"devices/date={strange}/devices.csv", DEVICES[:2])
        deliver(made, f"users/date={strange}/users.json", USERS[:1])
    (problem, *_) = made.replay("bronze.devices", WHOLE_TABLE).problems
    assert "nothing has landed of landing.devices" in problem
    deliver(made, "devices/date=2026-01-05/devices.csv", DEVICES)
    deliver(made, "users/date=2026-01-05/users.json", USERS)
    found = ("silver.devices", *OF_USERS)
    assert made.run(for_=found).problems == []
    assert sorted(made.rows("silver.devices", "full_name")) == ["One", "Three", "Two"]
    assert str(made.published("bronze.devices")[WHOLE_TABLE].landed).startswith("2026-01-05:")
    assert list(made.published("bronze.users")) == ["2026-01-05"]
    assert made.run(for_=found).runs == 0, "nothing is requested again"
    assert made.problems() == []


def test_mostly_rejected_delivery_removes_no_users_until_accepted(made: Deployment) -> None:
    deliver(made, "users/date=2026-01-06/users.json", [USERS[0], b"{", b"{", b"{"])
    (problem, *_) = made.run(for_=OF_USERS).problems
    assert "3 of 4 rows are dead letters; 1 can be used, there were 4" in problem
    assert "blogdata run --select silver.users --accept size" in problem
    assert made.pasted(problem) == [(["not_json"], 3)]
    assert current(made) == ["a", "b", "c", "d"]
    assert accepted(made, *OF_USERS) == []
    assert current(made) == sorted(made.rows("silver.users_current", "user_id")) == ["a"]
    assert made.run(for_=OF_USERS).problems == []
    assert made.problems() == []


@pytest.mark.campaign
def test_landing_corrections_names_exactly_the_stale_partitions(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = deploy("replayed")
    made.land(HOUR, [event("10:05", "/a"), b"{", event("10:06", "/nobody", visit_id="")])
    made.land("2026-01-06T03", [event("", "/b", event_time="2026-01-06T03:05:00Z")])
    assert made.run().problems == []
    assert sorted(made.rows("bronze.dead_letters", "reasons")) == [["missing_field:visit_id"], ["not_json"]]
    assert sorted(made.rows("gold.page_stats", "page")) == ["/a", "/b"], "the rest of their hour is published"
    payloads = [event("08:30", "/late").decode(), event("08:30", "/worse", user_id=" ").decode()]
    places = sorted(made.rows("bronze.dead_letters", "source_file", "source_offset"))
    file = tmp_path / "corrections.jsonl"
    corrections = [
        {"source_file": source, "source_offset": offset, "payload": payload}
        for (source, offset), payload in zip(places, payloads, strict=True)
    ]
    file.write_text("".join(json.dumps(correction) + "\n" for correction in corrections))
    monkeypatch.setenv("BLOGDATA_HOME", str(made.settings.home))

    def land(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["blogdata", "land", "replay", str(file), *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    assert land().splitlines() == ["2 correction(s) landed", "publish what they touch: blogdata run"]
    told = json.loads(land("--json"))
    assert (len(told["files"]), told["landed"]) == (2, [])
    before = made.published("silver.visits")
    assert made.run().problems == []
    changed = {key for key, entry in made.published("silver.visits").items() if before.get(key) != entry}
    assert changed == {"2026-01-05T08", "2026-01-05T10"}, "the hours of the events, and no other one"

    (visit,) = [source for page, source in made.rows("silver.visits", "page", "source_file") if page == "/late"]
    dead = dict(made.rows("bronze.dead_letters", "source_file", "replay"))
    assert sorted([visit, *(source for source, replay in dead.items() if replay)]) == sorted(told["files"])
    assert [source for source, replay in dead.items() if not replay] == [places[0][0]]
    assert made.problems() == []
