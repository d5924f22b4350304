"""The paid request is a step of its own: a later failure does not repeat it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from dagster._core.execution.api import create_execution_plan

from alert_servers import web_server
from assets.code import code_of
from blogdata.orchestration.calendar import calendar
from blogdata.orchestration.dataset import AssetBuilder
from blogdata.orchestration.names import asset_key
from blogdata.patterns.data_flow.local_sequencer import Answer, ask_once
from blogdata.services import config
from blogdata.services.answer_journal import AnswerJournal
from blogdata.services.locations import AT_MOST, LocationService, LocationsRefused, LocationsUnavailable
from blogdata.simulator.locations import LocationFaults, LocationServer, _Handler, serving
from held_keys import held
from sensors import jobs

ADDRESSES = [f"{8 + n // 250}.{n % 7}.3.{n % 250 + 1}" for n in range(1500)]
PRIVATE = "10.1.2.3"


@pytest.fixture
def faulty() -> Iterator[LocationServer]:
    faults = LocationFaults.every(0.05)
    with serving(LocationServer(faults=faults, seed=3, slow=1.2)) as server:
        yield server


@pytest.fixture
def healthy() -> Iterator[LocationServer]:
    with serving(LocationServer()) as server:
        yield server


@pytest.fixture
def turned_away(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Set the values of `Retry-After` with which a location server rejects its next requests, each once."""
    values, respond = list[str](), _Handler.respond

    def respond_later(handler: _Handler, body: bytes) -> None:
        if values:
            handler.answer(429, {"error": "throttled"}, {"Retry-After": values.pop(0)})
        else:
            respond(handler, body)

    monkeypatch.setattr(_Handler, "respond", respond_later)
    return values


def client(server: LocationServer) -> LocationService:
    return LocationService(url=server.url, rate=1000, time_out=1.0, pause=0.01)


def asking(service: LocationService, addresses: Sequence[str]) -> Mapping[str, Answer]:
    return {address: asdict(one) for address, one in service.locate(addresses).items()}


def expected(server: LocationServer, address: str) -> dict[str, object]:
    truth = server.truth(address)
    names = ("country", "region", "city", "valid_until")
    outcome = {"private": "reserved"}.get(truth.get("error", ""), truth.get("error", "found"))
    return {"outcome": outcome, **{name: truth.get(name) for name in names}}


@pytest.mark.campaign
def test_answers_are_the_truth_whatever_fails(faulty: LocationServer, tmp_path: Path) -> None:
    journal, service = AnswerJournal(path=tmp_path / "answers"), client(faulty)
    answers: dict[str, Answer] = {}
    for _ in range(20):
        asked = ask_once(journal, [*ADDRESSES, PRIVATE], lambda batch: asking(service, batch), at_most=20)
        answers.update(asked.answers)
        if not asked.missing:
            break
    assert answers == {address: expected(faulty, address) for address in [*ADDRESSES, PRIVATE]}
    assert set(faulty.met) == {"throttled", "failed", "timed_out", "crashed", "partial"}
    # Paid twice: only requests that were accepted but never answered.
    again = sum(faulty.paid.values()) - len(faulty.paid)
    lost = faulty.met["timed_out"] + faulty.met["crashed"]
    assert again <= 20 * lost + 10 * faulty.met["partial"]
    assert again >= lost


@pytest.mark.parametrize("service", ["", "http://127.0.0.1:1"])
def test_a_service_is_asked_in_a_step_before_the_one_that_publishes(tmp_path: Path, service: str) -> None:
    """Without a service, the graph of a run has no such step."""
    given = {"BLOGDATA_GEOLOCATION": service} if service else {}
    code = code_of(config.load({"BLOGDATA_HOME": str(tmp_path), **given}))
    steps = create_execution_plan(jobs.refresh(code, [])).get_executable_step_deps()
    built = AssetBuilder(code=code, calendar=calendar("2026-01-05")).assets()
    assets = {"__".join(key.path): above for asset in built for key, above in asset.asset_deps.items()}
    paid = {"landing__place_answers"} if service else set[str]()
    assert {step for step in steps if "answers" in step} == {key for key in assets if "answers" in key} == paid
    for step in ("silver__places", *paid):
        assert steps[step] == {"silver__visits"} | (paid - {step})
        assert assets[step] == {asset_key(above.replace("__", ".")) for above in steps[step]}


def test_later_failure_does_not_ask_again(healthy: LocationServer, tmp_path: Path) -> None:
    service = client(healthy)
    for _ in range(3):
        journal = AnswerJournal(path=tmp_path / "answers")
        asked = ask_once(journal, ADDRESSES[:250], lambda batch: asking(service, batch), at_most=AT_MOST)
        assert len(asked.answers) == 250
    assert set(healthy.paid.values()) == {1}
    assert len(healthy.paid) == 250


def test_two_runs_at_once_pay_once(healthy: LocationServer, tmp_path: Path) -> None:
    def run() -> None:
        service = client(healthy)
        journal = AnswerJournal(path=tmp_path / "answers")
        ask_once(journal, ADDRESSES[:300], lambda batch: asking(service, batch), at_most=AT_MOST)

    runs = [threading.Thread(target=run) for _ in range(4)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert set(healthy.paid.values()) == {1}


def test_a_killed_run_keeps_what_it_paid(healthy: LocationServer, tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import os, signal, sys
        from dataclasses import asdict
        from pathlib import Path
        from blogdata.patterns.data_flow.local_sequencer import ask_once
        from blogdata.services.answer_journal import AnswerJournal
        from blogdata.services.locations import LocationService
        service, asked = LocationService(url=sys.argv[1], rate=1000), []
        def ask(batch):
            if len(asked) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            asked.append(batch)
            return {address: asdict(one) for address, one in service.locate(batch).items()}
        ask_once(AnswerJournal(path=Path(sys.argv[2])), sys.argv[3:], ask, at_most=100)
    """)
    file = tmp_path / "answers"
    root = Path(__file__).parents[2] / "platform"
    killed = subprocess.run(
        [sys.executable, "-c", program, healthy.url, str(file), *ADDRESSES[:300]],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(AnswerJournal(path=file).stored()) == 200
    service = client(healthy)
    asked = ask_once(AnswerJournal(path=file), ADDRESSES[:300], lambda batch: asking(service, batch), at_most=AT_MOST)
    assert asked.answers == {address: expected(healthy, address) for address in ADDRESSES[:300]}
    assert set(healthy.paid.values()) == {1}


def test_a_service_that_is_down_leaves_questions(healthy: LocationServer, tmp_path: Path) -> None:
    service, journal = client(healthy), AnswerJournal(path=tmp_path / "answers")
    ask_once(journal, ADDRESSES[:5], lambda batch: asking(service, batch), at_most=AT_MOST)
    healthy.down = True
    asked = ask_once(journal, ADDRESSES[:8], lambda batch: asking(service, batch), at_most=AT_MOST)
    assert (len(asked.answers), asked.missing) == (5, tuple(ADDRESSES[5:8]))
    assert isinstance(asked.fault, LocationsUnavailable)


def test_requests_keep_to_the_rate_and_the_wanted_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [1000.0], list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 3))
        now[0] += seconds

    # Clocks that advance only while somebody sleeps; the server uses the same clock.
    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with serving(LocationServer(rate=4)) as server:
        service = LocationService(url=server.url, rate=4)
        for start in range(0, 800, AT_MOST):
            service.locate(ADDRESSES[start : start + AT_MOST])
        assert pauses == [0.25] * 7
        assert server.met["throttled"] == 0
        assert set(server.paid.values()) == {1}
        # A client faster than the service allows waits as long as the service says.
        pauses.clear()
        assert len(LocationService(url=server.url, rate=1000, pause=0.01).locate(ADDRESSES[:1])) == 1
        assert (server.met["throttled"], pauses) == (1, [1.0])


@pytest.mark.parametrize(
    ("wanted", "pauses"), [("45", [45.0]), ("0.75", [0.75]), ("Wed, 21 Oct 2026 07:28:00 GMT", [0.5]), ("nan", [0.5])]
)
def test_a_wanted_pause_is_kept(
    monkeypatch: pytest.MonkeyPatch, turned_away: list[str], wanted: str, pauses: list[float]
) -> None:
    kept = list[float]()
    monkeypatch.setattr("time.sleep", kept.append)
    turned_away.append(wanted)
    with serving(LocationServer()) as server:
        assert len(LocationService(url=server.url, rate=1e9).locate(ADDRESSES[:1])) == 1
    assert kept == pauses


def test_a_service_that_wants_a_long_pause_is_not_asked_early(
    monkeypatch: pytest.MonkeyPatch, turned_away: list[str]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waits"))
    turned_away.append("3600")
    with serving(LocationServer()) as server:
        with pytest.raises(LocationsUnavailable, match="a pause of 3600 seconds"):
            LocationService(url=server.url, rate=1e9).locate(ADDRESSES[:1])
        assert not server.paid


def test_a_wrong_key_stops_at_once(tmp_path: Path) -> None:
    with serving(LocationServer(key="right")) as server:
        service = LocationService(url=server.url, key=held(tmp_path, "wrong"))
        with pytest.raises(LocationsRefused, match="401"):
            ask_once(
                AnswerJournal(path=tmp_path / "answers"), ["8.8.8.8"], lambda batch: asking(service, batch), at_most=1
            )
    assert not server.paid


def test_a_redirect_does_not_get_the_key(tmp_path: Path) -> None:
    with web_server() as elsewhere, web_server() as service:
        service.answers = [(302, {"Location": elsewhere.address})]
        asked = LocationService(url=service.address, key=held(tmp_path, "the key"))
        with pytest.raises(LocationsRefused, match="302"):
            asked.locate(["8.8.8.8"])
        assert [headers["Authorization"] for headers in service.headers] == ["Bearer the key"]
        assert not elsewhere.headers


def test_published_answers_leave_the_journal_later(healthy: LocationServer, tmp_path: Path) -> None:
    file, service = tmp_path / "answers", client(healthy)
    ask_once(AnswerJournal(path=file), ADDRESSES[:4], lambda batch: asking(service, batch), at_most=AT_MOST)
    AnswerJournal(path=file).settle()
    assert [*AnswerJournal(path=file).stored()] == ADDRESSES[:4]
    assert file.stat().st_mode & 0o077 == 0
    AnswerJournal(path=file, kept=0).settle()
    assert AnswerJournal(path=file).stored() == {}
    assert not any(address.encode() in file.read_bytes() for address in ADDRESSES[:4])
