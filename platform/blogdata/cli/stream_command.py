"""`blogdata stream`: ingests visits, joins them with ads, or finds sessions, within seconds, until stopped."""

from __future__ import annotations

import signal
import threading
import uuid
from typing import Annotated

import typer

from blogdata.cli.output import Json, console, say_json
from blogdata.errors import ConfigurationError
from blogdata.operate.config import load
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext


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
    from assets.code import code
    from assets.streams import STREAMS
    from blogdata.landing.lines import Bounds
    from blogdata.operate import spark_attached
    from blogdata.stream import stream as streams
    from blogdata.stream.stream import Place

    chosen = next((known for known in STREAMS.values() if dataset in (known.name, *known.datasets)), None)
    if chosen is None:
        raise ConfigurationError(
            what=f"no stream is called '{dataset}'", where="stream", next_step=f"choose {' or '.join(STREAMS)}"
        )
    settings = load()
    lake = Lake(root=str(settings.lake))
    run_id = f"stream-{uuid.uuid4()}"
    place = Place(
        lake=lake,
        landing=settings.landing,
        run=RunContext(run_id=run_id, job="stream", code_version=code().version, trigger="command:blogdata stream"),
        bounds=Bounds.of(settings),
        home=settings.home,
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if not once and not as_json:
        tables = " and ".join(source.table for source in chosen.sources)
        console.print(f"taking in {tables} from {settings.landing}; Ctrl-C ends it")
    with spark_attached.guarded(settings) as spark:
        streams.run(
            spark,
            chosen,
            place,
            checkpoints=settings.checkpoints,
            every_seconds=None if once else every,
            new_checkpoint=new_checkpoint,
            stop=stop,
        )
    published = {name: sum(commit.rows_out for commit in place.commits(name)) for name in chosen.datasets}
    if as_json:
        say_json(published)
        return
    console.print(", ".join(f"{name}: {rows:,} rows" for name, rows in published.items()))
