"""Landed files that are faulty, gone, cut off or replaced remove no published row until a person accepts it."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path

import pytest

from blogdata.cli.main import main
from blogdata.contract.publication import WHOLE_TABLE
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import GRAPH

HOUR = "2026-01-05T10"
TIMES = {f"{name}_datetime": "2020-05-05T00:00:00Z" for name in ("registered", "first_connection", "last_connection")}
USERS = [json.dumps({"id": name, "login": name, "email": "a@example.org", **TIMES}).encode() for name in "abcd"]
DEVICES = [b"type;full_name;version", b"PC;One;1", b"PC;Two;2", b"Phone;Three;3"]


READERS = ("bronze.visits", "bronze.devices", "silver.users")
DAY = "2026-01-05"
HOURS = {name: f"{DAY}T{at}" for at, name in enumerate(("gone", "cut", "same", "moved", "cleaned"), 10)}


def current(deployment: Deployment) -> list[str]:
    return sorted(user for user, valid_to in deployment.rows("silver.users", "user_id", "valid_to") if valid_to is None)


def pages(made: Deployment, hour: str) -> list[str]:
    rows = made.rows("bronze.visits", "arrival_hour", "raw")
    return sorted(json.loads(raw)["page"] for key, raw in rows if key == hour)


@pytest.fixture(scope="module")
def made(deploy: Deploy) -> Deployment:
    """Two files of each hour, of users and of devices, beside deliveries of strange names; the tests go on from it."""
    made = deploy("deliveries")
    # By name each of them would be the newest.
    for strange in ("2026-01-05.bad", "2026-1-6", "2099-01-01", "9999-12-31"):
        made.deliver("devices", strange, DEVICES[:2], "one.csv")
        made.deliver("users", strange, USERS[:1], "one.json")
    for name, hour in HOURS.items():
        made.land(hour, [event(f"{hour[11:]}:05", f"/{name}/{at}") for at in (1, 2)], "one.json")
        made.land(hour, [event(f"{hour[11:]}:06", f"/{name}/3")], "two.json")
    for name, users, devices in (("one", USERS[:2], DEVICES[1:3]), ("two", USERS[2:], DEVICES[3:])):
        made.deliver("users", DAY, users, f"{name}.json")
        made.deliver("devices", DAY, [DEVICES[0], *devices], f"{name}.csv")
    assert made.run(for_=READERS).problems == []
    return made


def test_misnamed_and_future_deliveries_are_ignored(made: Deployment) -> None:
    devices = made.rows("bronze.devices", "full_name", "reasons")
    assert sorted(name for name, reasons in devices if not reasons) == ["One", "Three", "Two"]
    assert str(made.published("bronze.devices")[WHOLE_TABLE].landed).startswith(f"{DAY}:")
    assert list(made.published("bronze.users")) == [DAY]
    assert made.run(for_=READERS).runs == 0, "nothing is requested again"
    assert made.problems() == []


def test_no_published_row_goes_with_its_file_or_its_delivery_until_accepted(made: Deployment) -> None:
    (made.folder(HOURS["gone"]) / "two.json").unlink()
    cut = made.folder(HOURS["cut"]) / "one.json"
    cut.write_bytes(cut.read_bytes().splitlines(keepends=True)[0])
    same = made.folder(HOURS["same"]) / "two.json"
    same.write_text(same.read_text().replace("/same/3", "/same/4"))
    moved = made.folder(HOURS["moved"]) / "two.json"
    moved.with_name("renamed.json.gz").write_bytes(gzip.compress(moved.read_bytes()))
    moved.unlink()
    shutil.rmtree(made.folder(HOURS["cleaned"]))
    (made.landing / "devices" / f"date={DAY}" / "two.csv").unlink()
    (made.landing / "users" / f"date={DAY}" / "two.json").unlink()
    made.deliver("users", "2026-01-06", [USERS[0], b"{", b"{", b"{"])
    before = made.contents()

    problems = made.run(for_=READERS).problems
    told = "\n".join(problems)
    assert f"{HOURS['gone']} (1 of two.json)" in told
    assert f"{HOURS['cut']} (1 of one.json)" in told
    assert f"{DAY} (2 of two.json)\n  where: bronze.users" in told
    assert f"{DAY} (2 of two.csv)\n  where: bronze.devices" in told
    assert told.count("blogdata run --accept size") == 3
    (mostly,) = [problem for problem in problems if "blogdata run --select silver.users --accept size" in problem]
    assert "3 of 4 rows are dead letters; 1 can be used, there were 4" in mostly
    assert made.pasted(mostly) == [(["not_json"], 3)]
    for name in ("gone", "cut", "moved", "cleaned"):
        assert pages(made, HOURS[name]) == [f"/{name}/{at}" for at in (1, 2, 3)]
    assert pages(made, HOURS["same"]) == ["/same/1", "/same/2", "/same/4"]
    assert sorted(made.planner.waiting(GRAPH.task_of("bronze.visits"))) == [HOURS["gone"], HOURS["cut"]]
    assert {name: made.contents_of(name) for name in READERS[1:]}.items() <= before.items()
    assert current(made) == ["a", "b", "c", "d"]
    assert made.problems() == []

    assert made.run(for_=READERS, accept="size").problems == []
    assert pages(made, HOURS["gone"]) == ["/gone/1", "/gone/2"]
    assert pages(made, HOURS["cut"]) == ["/cut/1", "/cut/3"]
    assert pages(made, HOURS["cleaned"]) == [f"/cleaned/{at}" for at in (1, 2, 3)]
    assert current(made) == ["a"]
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
