"""`blogdata places`: how many addresses have a place, what waits, and a geolocation service to try with."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, existing, not_published, say_json
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.services.locations import journal_of, question_of
from blogdata.simulator.locations import LocationFaults, LocationServer, serving
from quality.contracts.places import PLACES

PORT = 3072


def places(
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Be a geolocation service to try with, in the foreground; Ctrl-C ends it")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the simulated service")] = PORT,
    faults: Annotated[float, typer.Option(help="Share of its requests that fail, in each way", min=0, max=0.2)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document")] = False,
) -> None:
    """Count the addresses whose place is known, and those that wait for an answer."""
    settings = existing()
    if simulate:
        _simulate(port, faults)
        return
    lake = Lake(root=str(settings.lake))
    if lake.version(PLACES.dataset) is None:
        raise not_published(lake, PLACES.dataset)
    rows = lake.columns(PLACES.dataset, ("ip", "valid_from", "outcome", "told_by")).to_pylist()
    outcomes = Counter((row["outcome"], row["told_by"]) for row in rows)
    published = {question_of(row["ip"], row["valid_from"]) for row in rows if row["told_by"]}
    unpublished = len(journal_of(settings).stored().keys() - published)
    if as_json:
        counts = [
            {"outcome": of, "told_by": by, "answers": count} for (of, by), count in sorted(outcomes.items(), key=str)
        ]
        say_json({"answers": counts, "paid_and_not_published": unpublished})
        return
    table = TextGrid()
    for title in ("outcome", "told by", "answers"):
        table.add_column(title, justify="right" if title == "answers" else "left")
    for (outcome, told_by), count in outcomes.most_common():
        table.add_row(outcome, told_by or "", f"{count:,}")
    console.print(table)
    if unpublished:
        console.print(f"{unpublished:,} answers are paid for and not published yet; a run publishes them")


def _simulate(port: int, faults: float) -> None:
    server = LocationServer(faults=LocationFaults.every(faults), seed=time.time_ns())
    try:
        with serving(server, port=port):
            console.print(f'a geolocation service\n[geolocation] url = "{server.url}"')
            threading.Event().wait()
    except OSError as error:
        raise ConfigurationError(
            what=f"port {port} cannot be used: {error.strerror}", where="--port", next_step="choose another one"
        ) from error
