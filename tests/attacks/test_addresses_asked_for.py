"""Requests to a geolocation service and their cost, for hostile addresses and hostile answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from assets.transforms import place_answers
from assets.transforms.place_answers import ALWAYS, Question
from blogdata.services.answer_journal import AnswerJournal
from blogdata.services.locations import EmbeddedTable, LocationService
from blogdata.simulator.locations import LocationServer, serving

NOW = datetime(2026, 1, 5, tzinfo=timezone.utc)


@pytest.fixture
def server() -> Iterator[LocationServer]:
    """A geolocation service that answers one address with nonsense."""
    with serving(LocationServer(senseless=frozenset(["1.1.1.1"]))) as found:
        yield found


def rows(server: LocationServer, journal: AnswerJournal, *addresses: str) -> dict[str, str]:
    asked = [Question(address=address, valid_from=ALWAYS, seen=NOW) for address in addresses]
    given = place_answers.ask(asked, LocationService(url=server.url, rate=1000), journal).answers
    found = place_answers.answers(asked, given, NOW, by_service=True)
    return {row[0]: row[3] for row in found}


def test_an_answer_that_makes_no_sense_is_paid_for_once_a_day(server: LocationServer, tmp_path: Path) -> None:
    journal = AnswerJournal(path=tmp_path / "answers")
    for _ in range(3):
        assert rows(server, journal, "1.1.1.1", "9.9.9.9")["1.1.1.1"] == "waiting"
        journal.settle()
    assert server.paid == {"1.1.1.1": 1, "9.9.9.9": 1}
    # A day later the journal entry has expired; the service answers correctly again.
    AnswerJournal(path=journal.path, kept=0).settle()
    server.senseless = frozenset()
    assert rows(server, journal, "1.1.1.1")["1.1.1.1"] in ("found", "unknown")
    assert server.paid["1.1.1.1"] == 2


def test_one_address_is_asked_for_once_however_it_is_written(server: LocationServer, tmp_path: Path) -> None:
    written = ("9.9.9.9", "::ffff:9.9.9.9", "::FFFF:909:909", "2620:fe::fe", "2620:FE:0::FE", "2620:fe::fe%eth0")
    found = rows(server, AnswerJournal(path=tmp_path / "answers"), *written)
    assert server.paid == {"9.9.9.9": 1, "2620:fe::fe": 1}
    assert len({found[address] for address in written[:3]}) == len({found[address] for address in written[3:]}) == 1
    assert "reserved" not in found.values()


@pytest.mark.parametrize("address", ["fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.1", "::1%lo", "%", "9.9.9.9.9", ""])
def test_private_addresses_are_not_requested(server: LocationServer, tmp_path: Path, address: str) -> None:
    assert rows(server, AnswerJournal(path=tmp_path / "answers"), address) == {address: "reserved"}
    assert not server.paid


def test_the_embedded_table_knows_mapped_addresses() -> None:
    asked = [Question(address=address, valid_from=ALWAYS, seen=NOW) for address in ("8.8.8.8", "::ffff:8.8.8.8")]
    plain, mapped = place_answers.answers(asked, place_answers.look_up(asked, EmbeddedTable()), NOW, by_service=False)
    assert plain[1:] == mapped[1:]
    assert plain[3:5] == ("found", "US")
