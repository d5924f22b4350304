"""`blogdata stream`: ingests visits, joins them with ads, or finds sessions, within seconds, until stopped."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from blogdata.cli.output import Json, console, say_json
from blogdata.errors import ConfigurationError
from blogdata.operate.config import load


def stream(
    dataset: Annotated[
        str, typer.Argument(help="The stream (visits, ads, sessions), or one of its datasets, like silver.visits_live")
    ] = "visits",
    once: Annotated[bool, typer.Option("--once", help="Take in what is there and end")] = False,
    every: Annotated[float, typer.Option(help="Seconds from one look at the landing zone to the next")] = 5.0,
    new_checkpoint: Annotated[
        bool, typer.Option("--new-checkpoint", help="Begin a new checkpoint; what is published is not published again")
    ] = False,
    as_json: Json = False,
) -> None:
    """Take in what lands, within seconds, until Ctrl-C."""
    from assets import streams

    chosen = next((known for known in streams.STREAMS.values() if dataset in (known.name, *known.datasets)), None)
    if chosen is None:
        raise ConfigurationError(
            what=f"no stream is called '{dataset}'", where="stream", next_step=f"choose {' or '.join(streams.STREAMS)}"
        )
    settings = load()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if not once and not as_json:
        tables = " and ".join(source.table for source in chosen.sources)
        console.print(f"taking in {tables} from {settings.landing}; Ctrl-C ends it")
    published = streams.run(
        settings,
        chosen,
        trigger="command:blogdata stream",
        every_seconds=None if once else every,
        new_checkpoint=new_checkpoint,
        stop=stop,
    )
    if as_json:
        say_json(published)
        return
    console.print(", ".join(f"{name}: {rows:,} rows" for name, rows in published.items()))
