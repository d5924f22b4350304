"""Forgotten persons leave the landing zone and all tables, stay away, and take no row of anybody else with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pytest

from assets.streams import live_sessions, live_visits
from blogdata.landing.lines import is_erased
from blogdata.ledger import ledger
from blogdata.privacy import forget
from blogdata.privacy.file_search import search
from blogdata.privacy.forget import CERTIFICATES, Journal
from blogdata.simulator.spec import FaultRates, SimulationSpec
from blogdata.stream.stream import Stream
from lineage import live
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import STREAMED

EARLIER, HOUR, NEXT_HOUR, NEXT_DAY = "2026-01-05T01", "2026-01-05T02", "2026-01-05T03", "2026-01-06"
ADDRESS, MARKED, NOBODYS = "9.77.200.201", "9.77.200.202", "9.77.200.203"
"""Addresses of visitors who are forgotten by them; of one, the place is only marked as removed in a file."""
FEW = ("bronze.visits", "bronze.users", "silver.visits", "silver.visit_conflicts", "silver.places")
OF_ROWS = (*FEW, "bronze.dead_letters", "silver.users", "silver.users_current")
"""Datasets of which each row is about one visit, user or address."""
Landed = dict[str, list[bytes]]


class Killed(BaseException):
    """Ends a command as a kill does: nothing handles it."""


@dataclass(frozen=True)
class Before:
    """A deployment before two users with many lines are forgotten."""

    made: Deployment
    datasets: Sequence[str]
    streams: Sequence[Stream]
    rows: dict[str, list[str]]
    live: dict[str, list[str]]
    landed: Landed

    @cached_property
    def persons(self) -> list[str]:
        return often(self.landed)[:2]

    @cached_property
    def users(self) -> dict[str, dict[str, str]]:
        return users_in(self.landed)

    @cached_property
    def values(self) -> frozenset[str]:
        """All that they are known by."""
        rows = [row for lines in self.landed.values() for line in lines if (row := parsed(line))]
        visits = {row["visit_id"] for row in rows if row.get("user_id") in self.persons}
        named = {self.users[user].get(name) for user in self.persons for name in ("login", "email")}
        escaped = {user.replace("u", "u0075", 1) for user in self.persons}
        of_address = {ADDRESS, MARKED, "at-address"}
        return frozenset(map(str, {*self.persons, *escaped, *visits, *named, *of_address} - {None}))

    def are_named_in(self, text: str) -> bool:
        return any(value in text for value in self.values)


def an_hour(made: Deployment, datasets: Sequence[str], streams: Sequence[Stream]) -> None:
    """Publish an hour with faults, and lines of its most frequent user that cannot be read, in datasets of rows."""
    with TemporaryDirectory() as folder:
        world = Deployment.create(Path(folder) / "world")
        faults = FaultRates.none(duplicate=0.1, conflict=0.1, null_field=0.1)
        world.simulate(SimulationSpec(days=1, visits_per_day=2000, seed=5, faults=faults))
        made.copy_hours(world, [HOUR])
    user = often(landed_in(made))[0]
    registered_in_future(made, user)
    broken = f'{{"visit_id": "v", "user_id": "{user}", "page": "/cut'.encode()
    escaped = broken.replace(b"u0", b"\\u00750")
    again = event(f"{HOUR[-2:]}:30", "/conflict", user_id=user, visit_id="of-his")
    made.land(HOUR, [broken, escaped, again, again.replace(b"Firefox", b"Lynx")], name="more.json")
    his, another = event("01:10", "/early", user_id=user, visit_id="of-his"), event("01:20", "/early-other")
    made.land(EARLIER, [his, another])
    tick(made, streams)
    contexts = [{"technical": {"browser": "Firefox"}, "user": {"ip": ip}} for ip in (ADDRESS, MARKED)]
    of_addresses = [event("01:30", f"/at-address-{at}", context=context) for at, context in enumerate(contexts)]
    made.land(EARLIER, of_addresses, name="more.json")
    assert made.run(for_=datasets).problems == []
    with made.session() as spark:
        path = made.lake.path("silver.places")
        spark.sql(f"UPDATE delta.`{path}` SET ip = '{NOBODYS}' WHERE ip = '{MARKED}'").collect()
    for file in made.folder(EARLIER).iterdir():
        file.unlink()


def registered_in_future(made: Deployment, user: str) -> None:
    """Deliver a user who is to register in years: its next delivery is no new registration."""
    file = made.landing / "users" / f"date={HOUR[:10]}" / "users.json"
    lines = file.read_bytes().splitlines(keepends=True)
    rows = [json.loads(line) if user.encode() in line else None for line in lines]
    assert any(rows)
    changed = [row and json.dumps({**row, "registered_datetime": "2099-01-01T00:00:00Z"}).encode() for row in rows]
    file.write_bytes(b"".join(after + b"\n" if after else line for after, line in zip(changed, lines, strict=True)))


def tick(made: Deployment, streams: Sequence[Stream]) -> None:
    """Have streams take in what has landed."""
    for stream in streams:
        live.tick(made, stream, home=made.settings.home)


def live_rows(made: Deployment, streams: Sequence[Stream]) -> dict[str, list[str]]:
    """Return every row of the streams' tables, without the name of its batch."""
    columns = {
        name: [column.name for column in STREAMED[name].columns if column.name != "batch"]
        for stream in streams
        for name in stream.datasets
    }
    return {name: sorted(repr(row) for row in made.rows(name, *columns[name])) for name in columns}


ALL = (OF_ROWS, (live_visits.STREAM, live_sessions.STREAM))
LONG = pytest.param(ALL, marks=[pytest.mark.campaign, pytest.mark.slow])


@pytest.fixture(scope="module", params=[(FEW, ()), LONG], ids=["an hour", "with streams"])
def before(deploy: Deploy, request: pytest.FixtureRequest) -> Before:
    datasets, streams = request.param
    an_hour(made := deploy(f"forget-{len(streams)}"), datasets, streams)
    return Before(made, datasets, streams, made.contents(), live_rows(made, streams), landed_in(made))


@pytest.fixture
def deployment(before: Before) -> Deployment:
    return before.made


def landed_in(made: Deployment) -> Landed:
    """Read the landed files, without what only the simulator knows."""
    files = [file for table in ("users", "visits") for file in made.landing.glob(f"{table}/**/*.*")]
    return {file.relative_to(made.landing).as_posix(): file.read_bytes().split(b"\n") for file in files}


def each(landed: Landed, table: str) -> list[bytes]:
    return [line for file, lines in landed.items() if file.startswith(f"{table}/") for line in lines]


def users_in(landed: Landed) -> dict[str, dict[str, str]]:
    return {row["id"]: row for line in each(landed, "users") if "id" in (row := parsed(line))}


def often(landed: Landed) -> list[str]:
    users = users_in(landed)
    named = Counter(row["user_id"] for line in each(landed, "visits") if (row := parsed(line)).get("user_id") in users)
    return [user for user, _ in named.most_common()]


def parsed(line: bytes) -> dict[str, str]:
    with suppress(ValueError):
        if isinstance(row := json.loads(line), dict):
            return row
    return {}


def test_an_erasure_that_was_killed_goes_on(before: Before, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    home, persons = before.made.settings, (*before.persons, "--address", ADDRESS, "--address", MARKED)
    if live_sessions.STREAM in before.streams:
        code, _, errors = said("forget", *persons)
        assert (code, "--leave silver.sessions_live" in errors) == (2, True)
        persons += ("--leave", "silver.sessions_live")
    code, plan, _ = said("forget", *persons)
    assert (code, "2 users" in plan, "bronze.users" in plan) == (0, True, True)
    assert landed_in(before.made) == before.landed
    assert [*home.home.glob("*.sqlite"), *home.home.glob("forgetting*")] == []

    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        steps = {**forget.STEPS, "computed again": dying}
        patch.setattr(forget, "STEPS", MappingProxyType(steps))
        with pytest.raises(Killed):
            said("forget", *persons, "--yes")
    assert said("forget", "somebody")[0] == 2
    code, done, errors = said("forget")
    assert (code, errors) == (0, "")
    assert forget.STEPS.keys() & {*done.splitlines()} == {"computed again", "cleared elsewhere"}
    assert not Journal(home.home).path.exists()


def test_no_byte_of_the_home_is_a_value_and_a_certificate_says_so(before: Before, said: Said) -> None:
    """Older versions, logs of tables and Dagster's storage, which had none, included."""
    assert {name for name, rows in before.rows.items() if any(map(before.are_named_in, rows))} >= {*before.datasets}
    found = search(before.made.settings.home, before.values)
    assert (found.traces, found.unsearched) == ({}, {})
    assert found.files > 100
    assert said("forget", "--search", *before.persons)[0] == 0
    (certificate,) = (json.loads(file.read_bytes()) for file in (before.made.settings.home / CERTIFICATES).iterdir())
    assert not before.are_named_in(repr(certificate))
    assert (certificate["files_with_values"], certificate["not_searched"]) == ({}, {})
    assert certificate["files_searched"] > 100
    assert certificate["done"] == [*forget.STEPS]


def test_lines_of_all_others_are_where_they_were(before: Before) -> None:
    after = landed_in(before.made)
    pairs = [pair for file, lines in before.landed.items() for pair in zip(lines, after.pop(file), strict=True)]
    assert after == {}
    assert all(len(line) == len(now) for line, now in pairs)
    changed = [line for line, now in pairs if line != now]
    assert all(before.are_named_in(line.decode(errors="replace")) for line in changed)
    erased = sum(is_erased(now) for _, now in pairs)
    assert erased == len(changed) > 2 * len(before.persons)


def test_rows_of_all_others_are_as_they_were(before: Before) -> None:
    for dataset in {*before.datasets} - {"silver.places"}:
        others = [row for row in before.rows[dataset] if not before.are_named_in(row)]
        assert before.made.contents_of(dataset) == others, dataset


def test_an_address_stays_only_while_somebody_else_has_it(before: Before) -> None:
    used = {address for address in before.made.rows("silver.visits", "ip") if address}
    assert used
    assert {*before.made.rows("silver.places", "ip")} == used
    assert len(used) < len(before.rows["silver.places"])


def test_the_ledger_names_what_was_erased(before: Before) -> None:
    assert before.made.problems() == []
    made = before.made
    assert made.published("bronze.visits")[EARLIER].settled().reasons == {"erased": 3}
    lines = landed_in(before.made)
    for table in ("visits", "users"):
        entries = made.published(f"bronze.{table}")
        erased = [entry.reasons.get("erased", 0) for key, entry in entries.items() if key != EARLIER]
        assert sum(erased) == sum(map(is_erased, each(lines, table)))
    stale = made.outstanding().wanted()
    assert {name: keys for name, keys in stale.items() if made.published(name).keys() & {*keys}} == {}


def test_the_next_delivery_and_a_late_line_bring_nobody_back(before: Before) -> None:
    made = before.made
    folder = made.landing / "users" / f"date={NEXT_DAY}"
    folder.mkdir()
    delivered = each(before.landed, "users")
    (folder / "users.json").write_bytes(b"\n".join(delivered))
    (folder / "_SUCCESS").touch()
    late = [line for line in each(before.landed, "visits") if before.are_named_in(line.decode(errors="replace"))]
    made.land(NEXT_HOUR, late)
    columns = {"bronze.users": "id", "bronze.visits": "visit_id"}
    ids = [set(made.rows(*of)) for of in columns.items()]
    assert made.run(for_=[*columns]).problems == []
    assert [set(made.rows(*of)) for of in columns.items()] == ids
    assert made.published("bronze.users")[NEXT_DAY].reasons == {"erased": len(before.persons)}
    arrived = made.published("bronze.visits")[NEXT_HOUR]
    assert (arrived.rows_out, arrived.reasons) == (0, {"erased": len(late)})
    assert not any(before.are_named_in(line.decode(errors="replace")) for line in each(landed_in(made), "users"))
    assert made.problems() == []


@pytest.mark.campaign
def test_rows_of_streams_go_and_those_of_all_others_stay(before: Before) -> None:
    others = {name: [row for row in rows if not before.are_named_in(row)] for name, rows in before.live.items()}
    assert live_rows(before.made, before.streams) == others
    assert all(len(others[name]) < len(rows) for name, rows in before.live.items())
    assert live_problems(before) == []


@pytest.mark.campaign
def test_a_stream_brings_nobody_back(before: Before) -> None:
    """It reads what landed late for the test before this one; the one with a state reads everything again."""
    made, rows = before.made, live_rows(before.made, before.streams)
    late = [line for line in each(before.landed, "visits") if before.are_named_in(line.decode(errors="replace"))]
    made.land(NEXT_HOUR, [*late, event("02:58", "/of-another")], name="later.json")
    tick(made, before.streams)
    found = live_rows(made, before.streams)
    assert not any(map(before.are_named_in, (row for each in found.values() for row in each)))
    new = {name: [row for row in found[name] if row not in rows[name]] for name in found}
    assert {name for name, rows in new.items() if len(rows) == 1} == {*before.live} & {
        "bronze.visits_live",
        "silver.visits_live",
    }
    assert all(len(found[name]) == len(rows[name]) + len(new[name]) for name in found)
    assert live_problems(before) == []


def live_problems(before: Before) -> list[str]:
    """List the problems that the ledger finds in the tables of streams."""
    made = before.made
    lines = [line for name in before.live for line in ledger.audit(made.lake, made.events, STREAMED[name])]
    return [line.problem for line in lines if line.problem]
