"""(i) Events to a partner: bins, and the three modes of the FIFO Orderer, through the same outbox and over HTTP."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.patterns.data_value.bin_pack_orderer import pack
from blogdata.patterns.data_value.fifo_orderer import Mode, line_up
from blogdata.patterns.data_value.http_target import MOST_RECORDS, HttpTarget
from blogdata.patterns.data_value.ordered_delivery import Orderer, deliver
from blogdata.patterns.data_value.outbox import Outbox
from blogdata.patterns.data_value.outbox_account import Delivery, Row
from blogdata.simulator.partner import Partner, PartnerFaults

STANDARD_RECORDS = 1_000
EACH = 4
LATENCY = 0.01
BINS, INDIVIDUAL = "bins of up to 500", "individual"
ORDERERS: Mapping[str, Callable[[list[Delivery]], Orderer]] = {
    BINS: lambda records: pack(records, size=MOST_RECORDS),
    INDIVIDUAL: lambda records: line_up(records, mode=Mode.INDIVIDUAL, size=1),
    "bulk, in the order of time": lambda records: line_up(records, mode=Mode.BULK, size=MOST_RECORDS),
    "concurrent, 5 in flight": lambda records: line_up(records, mode=Mode.CONCURRENT, size=1),
}


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many events, four of each visitor."""
    count = size.visits or STANDARD_RECORDS
    folder = bench.folder("partner")
    say(f"{count:,} events to a partner that answers after {LATENCY * 1000:g} ms, {size.rounds} rounds")
    requests: dict[str, int] = {}
    peers = [
        Peer(
            name=name,
            prepare=lambda number, name=name: _fill(folder / name, count),  # type: ignore[misc]
            run=lambda number, name=name: requests.update({name: _send(folder / name, name)}),  # type: ignore[misc]
        )
        for name in ORDERERS
    ]
    seconds = interleaved(peers, size.rounds)
    for name in ORDERERS:
        _check(folder / name, count)
    found = ratio(seconds, INDIVIDUAL, BINS)
    case = Case(
        name=f"{count:,} events of {count // EACH:,} visitors",
        seconds=seconds,
        ratios=[found, ratio(seconds, INDIVIDUAL, "concurrent, 5 in flight")],
        facts={
            "requests": requests,
            "events a second": {name: round(count / median(times)) for name, times in seconds.items()},
        },
    )
    target = Target(what="individual / bins", bound="at least", limit=20.0, found=found.value)
    return Result(letter="i", title="Events to a partner", cases=[case], targets=[target])


def _fill(folder: Path, count: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = [
        Row(identity=[str(number)], key=f"visitor-{number % (count // EACH)}", at=number, payload={"number": number})
        for number in range(count)
    ]
    _outbox(folder).take("2026-01-05T10", "1", rows, rows_in=count, private=0)


def _outbox(folder: Path) -> Outbox:
    return Outbox(path=folder / "outbox.sqlite", protected=3600.0)


def _send(folder: Path, name: str) -> int:
    box = _outbox(folder)
    file = folder / "received.jsonl"
    with box.alone(), _partner(file) as server, HttpTarget(server.url, key=None, timeout=10.0) as there:
        deliver(ORDERERS[name](box.due(before="9999")), box, there, patience=60.0)
        return server.requests


@contextmanager
def _partner(file: Path) -> Iterator[Partner]:
    with Partner(port=0, file=file, faults=PartnerFaults(latency=LATENCY)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _check(folder: Path, count: int) -> None:
    """Check that every way has delivered each event once, and each visitor's events in order."""
    newest: dict[str, int] = {}
    lines = (folder / "received.jsonl").read_text(encoding="utf-8").splitlines()
    for record in (found := [json.loads(line) for line in lines]):
        assert record["sequence"] == newest.get(record["key"], 0) + 1, json.dumps(record)
        newest[record["key"]] = record["sequence"]
    assert len(found) == count
