"""Decides which addresses are asked for, and from when to when their answers hold."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from blogdata.patterns.data_flow import local_sequencer
from blogdata.patterns.data_flow.local_sequencer import Answer, Asked, Journal
from blogdata.services.locations import AT_MOST, UNUSABLE, Location, Locator, question_of
from quality.contracts.places import WAITING

ALWAYS = datetime(1970, 1, 1, tzinfo=timezone.utc)
RESERVED = "reserved"
HERE, SERVICE = "here", "service"
"""Who told a place: this deployment by itself, or a service that learned the address."""
_log = logging.getLogger(__name__)
_UNKNOWN_HOLDS = timedelta(days=30)
_AT_LEAST = timedelta(days=1)
Row = tuple[str, datetime, datetime | None, str, str | None, str | None, str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class Question:
    """An address without a valid answer.

    Args:
        address: The address as received.
        valid_from: First instant that the answer holds.
        seen: Newest event of the address that needs it.
    """

    address: str
    valid_from: datetime
    seen: datetime

    @property
    def text(self) -> str:
        """Names the question in the journal: of one address that is written in two ways, it is asked once."""
        return question_of(_public(self.address) or self.address, self.valid_from)


def questions(new: DataFrame, places: DataFrame, *, visits: DataFrame, disclosed: bool) -> list[Question]:
    """Find the addresses whose newest event no answer covers, and those that wait for an answer.

    Args:
        new: Rows of silver.visits that were published since the last questions.
        places: Rows of silver.places.
        visits: All rows of silver.visits.
        disclosed: Whether somebody else learns the addresses; then visitors who do not allow their visits to be shared
            are not asked about, also if they allowed it before.
    """
    may_be_asked = ~F.col("keep_private") if disclosed else F.lit(True)
    seen = new.where(F.col("ip").isNotNull() & may_be_asked).groupBy("ip").agg(F.max("event_time").alias("seen"))
    waiting = places.where(F.col("outcome") == WAITING).select("ip", F.col("valid_from").alias("seen"))
    if disclosed and not waiting.isEmpty():
        waiting = waiting.join(visits.where(may_be_asked).select("ip"), on="ip", how="left_semi")
    newest = places.groupBy("ip").agg(
        F.max_by(F.struct("valid_from", "valid_until", "outcome"), "valid_from").alias("last")
    )
    last = F.col("last")
    wanted = (
        seen.unionByName(waiting)
        .groupBy("ip")
        .agg(F.max("seen").alias("seen"))
        .join(newest, on="ip", how="left")
        .where(last.isNull() | (last["outcome"] == WAITING) | (last["valid_until"] <= F.col("seen")))
    )
    start = F.when(last["outcome"] == WAITING, last["valid_from"]).otherwise(last["valid_until"])
    rows = (
        wanted.select("ip", F.unix_micros(start).alias("start"), F.unix_micros("seen").alias("seen"))
        .toArrow()
        .to_pylist()
    )
    return sorted(
        (
            Question(
                address=row["ip"],
                valid_from=ALWAYS if row["start"] is None else _instant(row["start"]),
                seen=_instant(row["seen"]),
            )
            for row in rows
        ),
        key=lambda question: question.text,
    )


def ask(asked: Sequence[Question], service: Locator, journal: Journal) -> Asked:
    """Ask a paid service for the answers that the journal does not have; each is stored before anything else happens.

    Args:
        asked: The questions; of reserved addresses nobody is asked.
        service: Who knows the places.
        journal: Where the answers are stored before they are published.

    Raises:
        LocationsRefused: The service refuses the requests.
        LockTimeout: Another run has been asking for too long.
    """
    public = _to_ask(asked)
    told = local_sequencer.ask_once(journal, list(public), partial(_located, service, public), at_most=AT_MOST)
    if told.fault is not None:
        _log.warning("%d addresses wait for an answer: %s", len(told.missing), told.fault)
    return told


def look_up(asked: Sequence[Question], table: Locator) -> Mapping[str, Answer]:
    """Look the questions up where an answer costs nothing."""
    public = _to_ask(asked)
    return _located(table, public, list(public))


def answers(asked: Sequence[Question], given: Mapping[str, Answer], now: datetime, *, by_service: bool) -> list[Row]:
    """Answer the questions: reserved addresses here, the others with what was given.

    Args:
        asked: The questions.
        given: Answers by the text of their question; others may be among them.
        now: The time, for answers without a usable end.
        by_service: Whether a service has given them.

    Returns:
        Rows of silver.places, one per question; the outcome of those without an answer is `waiting`.
    """
    public = _to_ask(asked)
    return [
        _row(question, _location(question, public, given), now, by_service=by_service and question.text in public)
        for question in asked
    ]


def _to_ask(asked: Sequence[Question]) -> Mapping[str, str]:
    """Return the addresses in public networks by their question, each in its usual form."""
    return {question.text: address for question in asked if (address := _public(question.address)) is not None}


def _located(locator: Locator, public: Mapping[str, str], batch: Sequence[str]) -> Mapping[str, Answer]:
    found = locator.locate([public[text] for text in batch])
    return {text: asdict(found[public[text]]) for text in batch if public[text] in found}


def _location(question: Question, public: Collection[str], given: Mapping[str, Answer]) -> Location:
    if question.text in given:
        found = Location(**given[question.text])
        return Location(outcome=WAITING) if found.outcome == UNUSABLE else found
    return Location(outcome=WAITING if question.text in public else RESERVED)


def _row(question: Question, found: Location, now: datetime, *, by_service: bool) -> Row:
    until = None if found.valid_until is None else datetime.fromisoformat(found.valid_until)
    if by_service and found.outcome == "unknown":
        until = now + _UNKNOWN_HOLDS
    if until is not None:
        # An answer that has already expired would be asked for, and paid for, without end.
        until = max(until, max(now, question.seen, question.valid_from) + _AT_LEAST)
    told_by = None if found.outcome == WAITING else SERVICE if by_service else HERE
    place = (found.country, found.region, found.city)
    return question.address, question.valid_from, until, found.outcome, *place, told_by


def _public(address: str) -> str | None:
    """Return the usual form of an address in a public network; None if it is in none, or is no address.

    An IPv4 address may be written as IPv6 (`::ffff:8.8.8.8`), and what is behind `%` names an interface of the machine
    that saw it.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    return str(found) if found.is_global else None


def _instant(micros: int) -> datetime:
    return ALWAYS + timedelta(microseconds=micros)
