"""The partner of a deployment: its outbox, its API, and the sending, which needs neither Dagster nor Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Entry
from blogdata.patterns.data_value import ordered_delivery
from blogdata.patterns.data_value.bin_pack_orderer import BinPacker
from blogdata.patterns.data_value.fifo_orderer import Fifo, Mode
from blogdata.patterns.data_value.http_target import MOST_RECORDS, HttpTarget, told
from blogdata.patterns.data_value.ordered_delivery import Orderer
from blogdata.patterns.data_value.outbox import Outbox, RowsUnaccounted
from blogdata.patterns.data_value.outbox_account import Delivery, OutboxLine, Row
from blogdata.patterns.security.pseudo_anonymizer import token_of
from blogdata.publish.partitions import Grain, key_of
from blogdata.publish.writes import Feed
from blogdata.secrets.secrets_pointer import SecretInUse
from blogdata.services import secrets
from blogdata.services.config import Settings

if TYPE_CHECKING:
    import pyarrow as pa

TOKENS = "partner-tokens"
"""Name of the secret from which the partner's tokens follow; without it the partner is told other ones."""
PROTECTED = timedelta(hours=23)
"""How long a request is repeated: the partner honours its key for 24 hours, and clocks differ."""


def is_configured(settings: Settings) -> bool:
    """Return whether the deployment has a partner."""
    return settings.partner.url is not None


def outbox(settings: Settings) -> Outbox:
    """Return the outbox of a deployment."""
    return Outbox(path=settings.home / "partner.sqlite", protected=PROTECTED.total_seconds())


@contextmanager
def target(settings: Settings, write: Feed) -> Iterator[HttpTarget]:
    """Open the partner's API, which is told tokens of visitors and of what the feed declares as `pseudonyms`.

    Raises:
        ConfigurationError: There is no partner, or its key cannot be read.
    """
    if settings.partner.url is None:
        raise ConfigurationError(
            what="no partner is configured",
            where=f"{settings.home / 'blogdata.toml'}, [partner]",
            next_step='write [partner] url = "https://…"',
        )
    name = settings.partner.secret
    key = SecretInUse(secrets.pointer(settings, name)) if name else None
    record = partial(_disguised, write=write, secret=secrets.read(settings, TOKENS).reveal())
    with HttpTarget(settings.partner.url, key=key, timeout=settings.partner.timeout, record=record) as opened:
        yield opened


def known_as(key: str, secret: str) -> str:
    """Return the token by which the partner knows a key, such as a user's id."""
    return token_of(key, secret, "key of the partner")


def _disguised(one: Delivery, *, write: Feed, secret: str) -> Mapping[str, object]:
    record = told(one)
    payload = record["payload"]
    # What waits may have been taken by a feed with other columns.
    named = [name for name in write.pseudonyms if name in payload]
    tokens = {name: token_of(payload[name], secret, f"{name} of the partner") for name in named}
    return {**record, "key": known_as(one.key, secret), "payload": {**payload, **tokens}}


def released(settings: Settings, now: datetime) -> str:
    """Return the first hour that is not sent yet: hours are sent once they have ended and the wait is over."""
    return key_of(now - timedelta(seconds=settings.partner.wait), Grain.HOUR)


def send(settings: Settings, box: Outbox, write: Feed) -> int:
    """Send what is due: first what was sent and not answered, then what waits. The caller is alone at the outbox.

    Returns:
        Number of records that the partner took.

    Raises:
        NotTaken: The partner takes nothing now; transient.
        Unanswered: The partner does not answer; transient.
        Refused: The partner refuses a request for good.
        ConfigurationError: There is no partner, or its key cannot be read.
    """
    taken, patience = 0, settings.partner.patience
    before = released(settings, datetime.fromtimestamp(box.clock(), timezone.utc))
    with target(settings, write) as api:
        unanswered = box.repeatable()
        while True:
            # Keys with an open request are not due before it is settled.
            waiting = [] if unanswered else box.due(before=before)
            if not unanswered and not waiting:
                return taken
            done = ordered_delivery.deliver(
                _orderer(settings, waiting), box, api, unanswered=unanswered, patience=patience
            )
            taken += done
            if not done and not unanswered:
                return taken
            unanswered = []


def is_behind(settings: Settings, events: EventLog, dataset: str) -> bool:
    """Return whether there is a partner, and the outbox lacks what is published, or something of it is to be sent."""
    if not is_configured(settings):
        return False
    box = outbox(settings)
    before = released(settings, datetime.now(timezone.utc))
    return bool(untaken(box, events, dataset) or box.repeatable() or box.due(before=before))


def untaken(box: Outbox, events: EventLog, dataset: str) -> list[str]:
    """List the partitions whose newest publication the outbox lacks, in order; none that has expired."""
    taken = box.sources()
    return sorted(
        key
        for key, (source, entry) in _published(events, dataset).items()
        if taken.get(key) != source and entry.expired is None
    )


def take(
    box: Outbox,
    events: EventLog,
    dataset: str,
    write: Feed,
    partition: str,
    batches: Callable[[], Iterable[pa.RecordBatch]],
) -> OutboxLine | None:
    """Take the newest publication of a partition into the outbox.

    Returns:
        The account of the partition; None if it was published again meanwhile, and is to be taken once more.

    Raises:
        RowsUnaccounted: The rows are not those of the ledger; nothing was taken.
    """
    source, entry = _published(events, dataset, [partition])[partition]
    rows, private, found = [], 0, 0
    for batch in batches():
        for row in batch.to_pylist():
            found += 1
            if row[write.unless] is False:
                rows.append(_row(row, write))
            else:
                private += 1
    if _published(events, dataset, [partition])[partition][0] != source:
        # The rows may be those of either publication.
        return None
    if found != entry.rows_out:
        raise RowsUnaccounted(
            what=f"{dataset} has {entry.rows_out} rows by its ledger, but {found} were read",
            where=partition,
            next_step=Remedy("nothing of it is sent; look at the account: ", ShowLedger(dataset=dataset)),
        )
    return box.take(partition, source, rows, rows_in=found, private=private)


def _published(
    events: EventLog, dataset: str, partitions: Iterable[str] | None = None
) -> Mapping[str, tuple[str, Entry]]:
    """Map published partitions to what identifies their rows, the table's id and the version, and to their lines."""
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


def _orderer(settings: Settings, waiting: list[Delivery]) -> Orderer:
    if settings.partner.mode == "bins":
        return BinPacker(waiting, size=MOST_RECORDS)
    return Fifo(waiting, mode=Mode(settings.partner.mode), size=MOST_RECORDS)
