"""The partner of a deployment: its outbox, its API, and the sending, which needs neither Dagster nor Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.publication import Entry
from blogdata.contract.writes import Feed
from blogdata.deliver.bin_pack_orderer import BinPacker
from blogdata.deliver.fifo_orderer import Fifo
from blogdata.deliver.ordered_delivery import MOST_RECORDS, HttpTarget, deliver
from blogdata.deliver.outbox import Delivery, Outbox, Row
from blogdata.errors import TransientError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.ledger.events import EventLog
from blogdata.operate import secrets
from blogdata.operate.config import Settings
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.security.pseudo_anonymizer import token_of
from blogdata.patterns.security.secrets_pointer import SecretInUse

TOKENS = "partner-tokens"
"""Name of the secret from which the partner's tokens follow; without it the partner is told other ones."""


def outbox(settings: Settings) -> Outbox:
    return Outbox(path=settings.home / "partner.sqlite")


def known_as(key: str, secret: str) -> str:
    """Return the token by which the partner knows a key, such as a user's id."""
    return token_of(key, secret, "key of the partner")


def sent_as(record: Delivery, *, write: Feed, secret: str) -> Mapping[str, object]:
    """Return what the partner is sent of a record: tokens for the key and the feed's `pseudonyms`."""
    payload = json.loads(record.payload)
    # What waits may have been taken by a feed with other columns.
    named = [name for name in write.pseudonyms if name in payload]
    tokens = {name: token_of(payload[name], secret, f"{name} of the partner") for name in named}
    computed = {"key": known_as(record.key, secret), "sequence": record.sequence}
    return wrapper.envelope({**payload, **tokens}, computed, field="payload")


def released(settings: Settings, now: datetime) -> str:
    """Return the first hour that is not sent yet: hours are sent once they have ended and the wait is over."""
    return key_of(now - timedelta(seconds=settings.partner.wait), Grain.HOUR)


def send(settings: Settings, box: Outbox, write: Feed) -> int:
    """Send what is due, and return the number of records that the partner took. The caller is alone at the outbox."""
    url, name, total = settings.partner.url, settings.partner.secret, 0
    assert url is not None, "without a partner there is no feed"
    before = released(settings, datetime.now(timezone.utc))
    key = SecretInUse(secrets.pointer(settings, name)) if name else None
    record = partial(sent_as, write=write, secret=secrets.read(settings, TOKENS).reveal())
    with HttpTarget(url, key=key, timeout=settings.partner.timeout, record=record) as api:
        while due := box.due(before=before):
            orderer: BinPacker | Fifo = (
                BinPacker(due, size=MOST_RECORDS) if settings.partner.mode == "bins" else Fifo(due)
            )
            taken = deliver(orderer, box, api)
            total += taken
            if not taken:
                break
    return total


def is_behind(settings: Settings, events: EventLog, dataset: str) -> bool:
    """Return whether there is a partner, and the outbox lacks what is published, or something of it is to be sent."""
    if settings.partner.url is None:
        return False
    box, before = outbox(settings), released(settings, datetime.now(timezone.utc))
    return bool(untaken(box, events, dataset) or box.due(before=before))


def untaken(box: Outbox, events: EventLog, dataset: str) -> list[str]:
    """List the partitions whose newest publication the outbox lacks, in order; none that has expired."""
    taken = box.sources()
    return sorted(
        key
        for key, (source, entry) in published(events, dataset).items()
        if taken.get(key) != source and entry.expired is None
    )


def take(
    box: Outbox, source: str, entry: Entry, write: Feed, partition: str, published_rows: Sequence[Mapping[str, object]]
) -> None:
    """Take the rows of a partition into the outbox, if they are as many as its ledger line says."""
    if len(published_rows) != entry.rows_out:
        # As when another run has published it meanwhile.
        raise TransientError(
            what=f"the partition has {entry.rows_out} rows by its ledger, but {len(published_rows)} were read",
            where=f"{entry.dataset} {partition}",
            next_step=Remedy("nothing of it is sent; look at the account: ", ShowLedger(dataset=entry.dataset)),
        )
    rows = [_row(row, write) for row in published_rows if row[write.unless] is False]
    box.take(partition, source, rows, rows_in=len(published_rows), private=len(published_rows) - len(rows))


def published(
    events: EventLog, dataset: str, partitions: Iterable[str] | None = None
) -> Mapping[str, tuple[str, Entry]]:
    """Map published partitions to the identity of their rows, `<table id>:<version>`, and to their ledger lines."""
    table = events.lake.caught_up(dataset)
    identity = "" if table is None else str(table.metadata().id)
    entries = events.publications(dataset, partitions)
    return {key: (f"{identity}:{entry.version}", entry) for key, entry in entries.items()}


def _row(row: Mapping[str, object], write: Feed) -> Row:
    at = row[write.at]
    assert isinstance(at, datetime)
    return Row(
        identity=[_text(row[name]) for name in write.identity],
        key=str(row[write.key]),
        at=(at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1),
        payload={name: row[name] if row[name] is None else _text(row[name]) for name in write.payload},
    )


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)
