"""A partner's server and an outbox for tests, and the records that the partner should receive."""

from __future__ import annotations

import hmac
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blogdata.deliver.ordered_delivery import HttpTarget
from blogdata.deliver.outbox import Delivery, Outbox, Row
from patterns.partner_server import Partner, PartnerFaults

PARTITION = "2026-01-05T10"


@contextmanager
def partner(file: Path, faults: PartnerFaults | None = None, **more: Any) -> Iterator[Partner]:
    """A running partner."""
    server = Partner(file=file, faults=faults or PartnerFaults(), **more)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rows(keys: int, per_key: int) -> list[Row]:
    """Build rows of several keys with interleaved times; one key has five times as many."""
    counts = {f"user-{number:03d}": per_key * (5 if number == 0 else 1) for number in range(keys)}
    return [row(key, position) for key, count in counts.items() for position in range(count)]


def row(key: str, position: int, **payload: object) -> Row:
    return Row(identity=[key, str(position)], key=key, at=position, payload={"at": position, **payload})


def outbox(folder: Path, taken: Sequence[Row] = ()) -> Outbox:
    """An outbox with pending rows."""
    made = Outbox(path=folder / "outbox.db")
    if taken:
        made.take(PARTITION, "1", taken, rows_in=len(taken), private=0)
    return made


@contextmanager
def target(server: Partner, timeout: float = 0.1) -> Iterator[HttpTarget]:
    """A target that sends to a partner."""
    with HttpTarget(server.url, key=None, timeout=timeout, record=as_it_is) as made:
        yield made


def as_it_is(record: Delivery) -> dict[str, Any]:
    """What is sent of a record, without tokens."""
    return {"key": record.key, "sequence": record.sequence, "payload": json.loads(record.payload)}


def expected(taken: Sequence[Row]) -> dict[str, list[tuple[int, int]]]:
    """Compute the expected deliveries: numbers and times of the records by key, in order."""
    times: dict[str, list[int]] = defaultdict(list)
    for pending in sorted(taken, key=lambda pending: pending.at):
        times[pending.key].append(pending.at)
    return {key: [*enumerate(at, 1)] for key, at in times.items()}


def token(home: Path, name: str, value: str) -> str:
    """Compute what the partner of a deployment is told instead of a key, or of an id in the payload."""
    secret = (home / "secrets" / "partner-tokens").read_bytes().strip()
    key = hmac.digest(secret, f"{name} of the partner".encode(), "sha256")
    return hmac.digest(key, value.encode(), "sha256").hex()[:32]


def by_key(records: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    """Group the records that a partner received by key, in order of receipt."""
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        groups[record["key"]].append((record["sequence"], record["payload"]["at"]))
    return dict(groups)


def received(file: Path) -> list[dict[str, Any]]:
    """Read the records that a partner accepted from its file, in order, including doubled ones."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [record for line in lines for record in json.loads(line)["taken"]]
