"""Dead letters in a full load, and their corrections: neither removes other rows."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.cli.main import main
from blogdata.cli.pipeline import Pipeline
from blogdata.evidence import damage, repair
from blogdata.lake.commit import WHOLE_TABLE, Account
from blogdata.orchestration.step import Step
from blogdata.patterns.error_management import dead_letter_replay as replays
from blogdata.patterns.error_management.dead_letter_replay import Correction
from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.publish.run import RunContext
from blogdata.publish.target import Provenance, Target
from lineage import brute_force
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import CONTRACTS

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


def test_mostly_rejected_delivery_removes_no_users_until_accepted(deploy: Deploy) -> None:
    made = deploy("dead-users")
    deliver(made, "users/date=2026-01-05/users.json", USERS)
    assert made.run(for_=OF_USERS).problems == []
    deliver(made, "users/date=2026-01-06/users.json", [USERS[0], b"{", b"{", b"{"])
    for _ in range(2):
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
def test_a_day_of_users_reads_its_delivery_and_the_table(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late or changed delivery is merged with all later ones; all are read only if there is no earlier version."""
    made, read, publish = deploy("days-of-users"), list[list[str]](), Step.publish

    def noted(step: Step, rows: Any, *arguments: Any, **more: Any) -> Any:
        if step.contract.dataset == "silver.users":
            files = " ".join(rows.inputFiles())
            read.append(sorted({*re.findall(r"/load_date=[\d-]{8}(\d\d)/", files), *re.findall("silver/users", files)}))
        return publish(step, rows, *arguments, **more)

    def day(number: int, *lines: bytes) -> None:
        deliver(made, f"users/date=2026-01-{number:02}/users.json", [*lines])
        assert made.run(for_=["silver.users"]).problems == []

    monkeypatch.setattr(Step, "publish", noted)
    table = "silver/users"
    day(5, *USERS)
    day(6, *USERS[:3])
    day(8, *USERS[:3], b"{")
    assert read == [["05"], ["06", table], ["08", table]]
    day(7, *USERS)
    day(6, *USERS[1:], USERS[1])
    assert read[3:] == [["07", "08", table], ["06", "07", "08", table]]
    found = made.contents_of("silver.users")
    assert made.run(select=["silver.users"]).problems == [], "requested again, it is computed from all deliveries"
    assert (read[5], made.contents_of("silver.users")) == (["05", "06", "07", "08"], found)
    entry = made.published("silver.users")[WHOLE_TABLE]
    assert (entry.rows_in, dict(entry.reasons)) == (16, {"dead_lettered": 1, "unchanged": 15 - entry.rows_out})
    (first, *_) = made.events.history("silver.users")
    for file in made.lake.at("silver.users", first.version).file_uris():
        Path(file).unlink()
    day(6, *USERS)
    assert read[6] == ["05", "06", "07", "08"]
    assert made.problems() == []


@pytest.mark.campaign
def test_short_or_empty_delivery_removes_no_users(deploy: Deploy) -> None:
    made = deploy("cut-off-users")
    deliver(made, "users/date=2026-01-05/users.json", USERS)
    deliver(made, "users/date=2026-01-06/users.json", USERS[:1])
    deliver(made, "users/date=2026-01-07/users.json", [])
    deliver(made, "users/date=2026-01-08/users.json", USERS[:3])
    for _ in range(2):
        problems = "\n".join(made.run().problems)
        assert "- 2026-01-06: the source has 1 rows, less than 50% of the last load's 4" in problems
        assert "- 2026-01-07: the source has 0 rows, the last load had 4" in problems
        assert list(made.published("bronze.users")) == ["2026-01-05", "2026-01-08"], "no other day waits"
        assert current(made) == sorted(made.rows("silver.users_current", "user_id")) == ["a", "b", "c"]
    assert made.problems() == []

    assert accepted(made) == [], "as the message says: blogdata run --accept size"
    assert current(made) == ["a", "b", "c"]
    gone = {user: valid_to for user, valid_to in made.rows("silver.users", "user_id", "valid_to") if valid_to}
    assert {user: f"{day:%d}" for user, day in gone.items()} == {"b": "06", "c": "06", "d": "06"}
    assert made.run().runs == 0
    assert made.problems() == []


@pytest.mark.campaign
def test_a_rejected_row_keeps_the_user_unchanged(deploy: Deploy) -> None:
    made = deploy("dead-user")

    def user(name: str, login: str | None = None, **more: object) -> bytes:
        return json.dumps({"id": name, "login": login or name, **TIMES, **more}).encode()

    unread = [user("b", "bo", registered_datetime="yesterday"), user("e", email=[]), b'{"id": "c"', b'{"id": 12}']
    deliver(made, "users/date=2026-01-05/users.json", [user(name) for name in "abcd"])
    deliver(made, "users/date=2026-01-06/users.json", [user("a", "al"), user("a"), user("d"), *unread])
    assert made.run().problems == []
    assert current(made) == ["a", "b", "d"]
    assert sorted(made.asked("SELECT user_id, login, changed_on, occurrences FROM silver.users_current_whole")) == [
        ("a", "al", "2026-01-06", 2),
        ("b", "b", "2026-01-05", 0),
        ("d", "d", "2026-01-05", 1),
    ]
    entry = made.published("silver.users_current")["2026-01-06"]
    assert (entry.rows_in, entry.rows_out) == (7, 3)
    assert dict(entry.reasons) == {"dead_lettered": 4, "duplicates": 1, "kept": -1}
    assert made.problems() == []

    deliver(made, "users/date=2026-01-07/users.json", [user(name) for name in "abde"])
    assert made.run().problems == []
    (version,) = (row[1:] for row in made.rows("silver.users", "user_id", "valid_to", "snapshots") if row[0] == "b")
    assert version == (None, 2)
    assert ("b", "2026-01-05", 1) in made.rows("silver.users_current", "user_id", "changed_on", "occurrences")
    before = made.contents_of("silver.users_current")
    assert made.replay("silver.users_current", "2026-01-06").problems == []
    assert made.contents_of("silver.users_current") == before
    assert made.problems() == []


@pytest.mark.campaign
def test_a_renamed_column_removes_no_devices_until_accepted(deploy: Deploy) -> None:
    made = deploy("dead-devices")
    deliver(made, "devices/date=2026-01-05/devices.csv", DEVICES)
    assert made.run().problems == []
    deliver(made, "devices/date=2026-01-06/devices.csv", [b"kind;full_name;version", *DEVICES[1:]])
    (problem, *_) = made.run().problems
    assert "4 of 4 rows are dead letters; 0 can be used, there were 3" in problem
    assert sum(rows for _, rows in made.pasted(problem)) == 4
    assert len(made.rows("silver.devices", "full_name")) == 3
    assert accepted(made, "silver.devices") == []
    assert set(made.rows("silver.devices", "occurrences", "valid_to")) == {(0, brute_force.midnight("2026-01-06"))}
    entry = made.published("silver.devices")[WHOLE_TABLE]
    assert dict(entry.reasons) == {"dead_lettered": 4, "duplicates": 0, "earlier_versions": -3}
    assert made.problems() == []


def visit(time: str, *versions: str) -> list[bytes]:
    """Build visits of one moment, one for each version of a PC."""
    return [
        event("", f"/{time}/{version}", event_time=f"{time}:00Z", context={"technical": pc(version)})
        for version in versions
    ]


def pc(version: str) -> dict[str, str]:
    return {"device_type": "PC", "device_version": version}


def names(deployment: Deployment) -> dict[str, dict[str, str | None]]:
    """Map each hour to the name of each known version of a PC."""
    found: dict[str, dict[str, str | None]] = {}
    columns = ("event_hour", "device_version", "device_name", "device_known")
    for hour, version, name, known in deployment.rows("silver.visits_enriched", *columns):
        assert known or name is None
        if known:
            assert found.setdefault(hour, {}).setdefault(version, name) == name
    return found


MORNING, NEXT_MORNING, NEXT_NOON = "2026-01-05T10", "2026-01-06T09", "2026-01-06T12"
FIRST_NAMES, OTHER_NAMES = {"1": "One", "2": "Two"}, {"1": "Eins", "3": "Drei"}
OTHER_DEVICES = [DEVICES[0], b"PC;Eins;1", b"Phone;Three;3", b"PC;Drei;3"]
"""One of a PC is renamed, two is gone, three is new."""


@pytest.mark.campaign
def test_visits_join_devices_as_of_their_event_time(deploy: Deploy) -> None:
    made = deploy("devices-as-of")
    deliver(made, "devices/date=2026-01-05/devices.csv", DEVICES)
    made.land(MORNING, visit("2026-01-05T10:05", "1", "2", "3"))
    made.land(NEXT_MORNING, visit("2026-01-06T09:05", "1", "2", "3"))
    assert made.run().problems == []
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: FIRST_NAMES}
    old = made.published("silver.visits_enriched")[MORNING]

    deliver(made, "devices/date=2026-01-06/devices.csv", OTHER_DEVICES)
    assert made.run().problems == []
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: OTHER_NAMES}
    assert made.published("silver.visits_enriched")[MORNING] == old, "no hour of an earlier day runs again"
    made.land(NEXT_NOON, [*visit("2026-01-06T12:05", "1", "2", "3"), *visit("2026-01-05T10:20", "1", "2", "3")])
    assert made.run().problems == []
    assert made.published("silver.visits_enriched")[MORNING] != old
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: OTHER_NAMES, NEXT_NOON: OTHER_NAMES}
    assert made.run().runs == 0
    assert made.problems() == []

    # A second list of that day, and the consequences of losing the table.
    deliver(made, "devices/date=2026-01-06/more.csv", [DEVICES[0], b"PC;Zwei;2"])
    assert made.run().problems == []
    all_names = {**OTHER_NAMES, "2": "Zwei"}
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: all_names, NEXT_NOON: all_names}
    columns = [column.name for column in CONTRACTS["silver.devices"].columns]
    kept, contents = made.rows("silver.devices", *columns), made.contents()
    since = brute_force.midnight("2026-01-06")
    assert sorted(kept, key=repr) == [
        ("PC", "1", "Eins", 1, "2026-01-06", since, None),
        ("PC", "1", "One", 0, "2026-01-05", None, since),
        ("PC", "2", "Two", 0, "2026-01-05", None, since),
        ("PC", "2", "Zwei", 1, "2026-01-06", since, None),
        ("PC", "3", "Drei", 1, "2026-01-06", since, None),
        ("Phone", "3", "Three", 1, "2026-01-05", None, None),
    ]
    for file in Path(made.lake.path("silver.devices")).glob("*.parquet"):
        file.unlink()
    contract = CONTRACTS["silver.devices"]
    repair.mend(made.lake, made.events, contract, damage.inspect(made.lake, contract.dataset, None))
    assert made.run().problems == []
    assert made.contents() == contents, "everything is computed again from the copies of the lists"
    assert made.problems() == []


@pytest.mark.campaign
def test_a_device_table_without_versions_is_upgraded_losslessly(deploy: Deploy) -> None:
    made = deploy("older-devices")
    now = CONTRACTS["silver.devices"]
    columns = tuple(column for column in now.columns if column.name not in ("changed_on", "valid_from", "valid_to"))
    older = replace(now, columns=columns, key=now.key[:2], rules=(), audits=(), measures={})
    deliver(made, "devices/date=2026-01-05/devices.csv", DEVICES)
    assert made.run(select=["bronze.devices"]).problems == []
    with made.session() as spark:
        rows = [("PC", "1", "One", 1), ("PC", "2", "Two", 1), ("Phone", "3", "Three", 1)]
        frame = spark.createDataFrame(rows, older.ddl)
        aim = Target(lake=made.lake, contract=older, run=RunContext(run_id="older", job="tests", code_version="v1"))
        account = Account(rows_in=4, reasons={"dead_lettered": 1})
        overwrite_table(frame, aim, Provenance(inputs={"bronze.devices": 0}, accounts={WHOLE_TABLE: account}))
    made.land(MORNING, visit("2026-01-05T10:05", "1", "2", "3"))
    made.land(NEXT_MORNING, visit("2026-01-06T09:05", "1", "2", "3"))
    assert made.run().problems == []
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: FIRST_NAMES}
    deliver(made, "devices/date=2026-01-06/devices.csv", OTHER_DEVICES)
    assert made.run().problems == []
    assert names(made) == {MORNING: FIRST_NAMES, NEXT_MORNING: OTHER_NAMES}
    assert sorted(made.rows("silver.devices", "full_name", "changed_on", "occurrences")) == [
        ("Drei", "2026-01-06", 1),
        ("Eins", "2026-01-06", 1),
        ("One", "2026-01-05", 0),
        ("Three", "2026-01-05", 1),
        ("Two", "2026-01-05", 0),
    ]
    assert made.run().runs == 0
    assert made.problems() == []


def test_misnamed_and_future_deliveries_are_ignored(deploy: Deploy) -> None:
    made = deploy("strange-devices")
    # By name each of them would be the newest.
    for strange in ("2026-01-05.bad", "2026-1-6", "2099-01-01", "9999-12-31"):
        deliver(made, f"devices/date={strange}/devices.csv", DEVICES[:2])
        deliver(made, f"users/date={strange}/users.json", USERS[:1])
    (problem, *_) = made.replay("bronze.devices", WHOLE_TABLE).problems
    assert "no complete delivery of devices has landed" in problem
    deliver(made, "devices/date=2026-01-05/devices.csv", DEVICES)
    deliver(made, "users/date=2026-01-05/users.json", USERS)
    found = ("silver.devices", "bronze.users")
    assert made.run(for_=found).problems == []
    assert sorted(made.rows("silver.devices", "full_name")) == ["One", "Three", "Two"]
    assert str(made.published("bronze.devices")[WHOLE_TABLE].landed).startswith("2026-01-05:")
    assert list(made.published("bronze.users")) == ["2026-01-05"]
    assert made.run(for_=found).runs == 0, "nothing is requested again"
    assert made.problems() == []


@pytest.mark.campaign
def test_a_correction_loses_to_the_original_event(deploy: Deploy) -> None:
    """Independent of which file sorts first by name, the correction's or the hour's."""
    made = deploy("corrected")
    files = {
        "/a": made.land(HOUR, [event("10:05", "/a"), b"{"], name="visits.json"),
        "/b": made.land(NEXT, [event("11:05", "/b"), b"{"], name="a.json"),
    }
    assert made.run().problems == []
    places = sorted(made.rows("bronze.dead_letters", "source_file", "source_offset"))
    payloads = [event(at, page, user_id="somebody else").decode() for at, page in (("10:05", "/a"), ("11:05", "/b"))]
    corrections = [
        Correction(source_file=source, source_offset=offset, payload=payload)
        for (source, offset), payload in zip(places, payloads, strict=True)
    ]
    landed = replays.land_corrections(corrections, places, made.landing, letters=CONTRACTS["bronze.dead_letters"])
    assert made.run().problems == []
    assert sorted(made.rows("silver.visits", "user_id", "source_file")) == [
        (f"user-{page}", str(Path("visits", *file.parts[-3:]))) for page, file in files.items()
    ]
    assert sorted(made.rows("silver.visit_conflicts", "source_file")) == sorted(landed.files)
    # The same corrections again change nothing, and nothing is published again.
    replays.land_corrections(corrections, places, made.landing, letters=CONTRACTS["bronze.dead_letters"])
    assert made.run().runs == 0


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

    first, *_, last = lines = land().splitlines()
    assert (first, last) == ("2 correction(s) landed", "publish all of it: blogdata run")
    assert ["silver.visits", "2026-01-05T08,", "2026-01-05T10"] in [line.split() for line in lines]
    told = json.loads(land("--json"))
    assert (len(told["files"]), told["landed"]) == (2, []), "they are stale until they are published"
    before = {dataset: made.published(dataset) for dataset in CONTRACTS}
    assert made.run().problems == []
    changed = {
        dataset: keys
        for dataset, held in before.items()
        if (keys := [key for key, entry in sorted(made.published(dataset).items()) if held.get(key) != entry])
    }
    # How far sessions reach, and whether an address is new, shows only when the hours before are there.
    for dataset in ("silver.sessions", "silver.sessions_pending", "silver.places"):
        assert {*told["stale"].pop(dataset, ())} <= {*changed.pop(dataset)}
    assert told["stale"] == changed
    assert land().splitlines() == [
        "0 correction(s) landed, 2 were there already",
        "nothing is stale because of them: they are published",
    ]

    (visit,) = [source for page, source in made.rows("silver.visits", "page", "source_file") if page == "/late"]
    dead = dict(made.rows("bronze.dead_letters", "source_file", "replay"))
    assert sorted([visit, *(source for source, replay in dead.items() if replay)]) == sorted(told["files"])
    assert [source for source, replay in dead.items() if not replay] == [places[0][0]]
    assert made.problems() == []


@pytest.mark.campaign
def test_replaying_a_missing_arrival_hour_publishes_it_empty(deploy: Deploy) -> None:
    """As in a range of partitions that a person selects in the UI."""
    made = deploy("gaps")
    made.land(HOUR, [event("10:05", "/a"), b"{"])
    assert made.run().problems == []
    for dataset in ("bronze.dead_letters", "silver.late_visits"):
        assert made.replay(dataset, HOUR, NEXT).problems == []
        assert made.published(dataset)[NEXT].rows_out == 0
    assert made.problems() == []
