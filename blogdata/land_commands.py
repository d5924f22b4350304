"""`blogdata land`: puts data into the landing zone, simulated or from access logs."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.output import say_json
from errors import ConfigurationError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

app = typer.Typer(help="Put data into the landing zone.", no_args_is_help=True, add_completion=False)

_EXAMINED_BYTES = 1 << 20
"""Bytes at the beginning of a file that show whether it is an access log."""
_NAMED = 5
"""Maximum number of partitions to list one by one."""
Landing = Annotated[Path | None, typer.Option(help="The landing zone; the deployment's own when not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def simulate(
    days: Annotated[int, typer.Option(help="Days to simulate.")],
    visits_per_day: Annotated[int, typer.Option(help="Visit events a day on average, before faults.")],
    seed: Annotated[int, typer.Option(help="Seed: the same options give the same bytes.")],
    faults: Annotated[Path | None, typer.Option(help="TOML or JSON file of `fault = rate`.")] = None,
    start: Annotated[str, typer.Option(help="First day, YYYY-MM-DD.")] = "2026-01-05",
    landing: Landing = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files of visits and ads.")] = False,
    ads: Annotated[bool, typer.Option(help="Land the ads that visitors were shown, too.")] = True,
    as_json: Json = False,
) -> None:
    """Simulate a blog's visits, users, devices and displayed ads, with known truth beside them in `_truth/`."""
    from simulator import landing as simulator
    from simulator.faults import FaultRates, load_faults
    from simulator.spec import SimulationSpec

    spec = SimulationSpec(
        days=days,
        visits_per_day=visits_per_day,
        seed=seed,
        start=_day(start),
        faults=load_faults(faults) if faults else FaultRates(),
        gzip=gzip,
        ads=ads,
    )
    target = _writable(landing)
    begun = time.monotonic()
    with _progress(quiet=as_json) as report:
        truth = simulator.simulate(spec, target, report)
    seconds = time.monotonic() - begun
    figures = ("lines", "bytes", "valid", "dead", "late", "unique", "duplicates", "conflicts")
    result = {
        "landing": str(target),
        "already_there": truth.already_there,
        "hours": len(truth.hours),
        **{name: truth.total(name) for name in figures},
        **({} if truth.ads is None else {"ads": {name: truth.ads.total(name) for name in figures}}),
        "seconds": round(seconds, 1),
    }
    if as_json:
        say_json(result)
    elif truth.already_there:
        typer.echo(f"{target} holds this simulation already: nothing was changed")
    else:
        shown = [name for name in figures if name != "bytes"]
        typer.echo(f"visits: {', '.join(f'{truth.total(name):,} {name}' for name in shown)}")
        if truth.ads is not None:
            typer.echo(f"ads: {', '.join(f'{truth.ads.total(name):,} {name}' for name in shown)}")
        typer.echo(f"{target}: {seconds:.1f} s; the truth is in {target / '_truth'}")


@app.command()
def logs(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Access logs, plain or gzip.")],
    landing: Landing = None,
    as_json: Json = False,
) -> None:
    """Put access logs into the landing zone, byte for byte and verified."""
    from patterns.ingestion.log_splitter import LOGS
    from patterns.ingestion.passthrough_replicator import land

    said = {
        "new": "landed",
        "same": "is there already: nothing was changed",
        "grown": "has grown: the landed copy was replaced",
        "renamed": "landed under another name, its own was taken by another log",
    }
    for file in files:
        _require_log(file)
    target = _writable(landing)
    results = []
    for file in files:
        landed = land(file, target / LOGS)
        made = {"bytes": None, "sha256": None} if landed.replica is None else asdict(landed.replica)
        results.append({"file": str(file), "landed": str(landed.path), "outcome": landed.outcome, **made})
        if not as_json:
            typer.echo(f"{file}: {said[landed.outcome]} ({landed.path})")
    if as_json:
        say_json(results)


@app.command("replay")
def replay_corrections(
    file: Annotated[Path, typer.Argument(help="JSON Lines: source_file, source_offset (of the dead letter), payload.")],
    as_json: Json = False,
) -> None:
    """Land corrected dead letters in the hours they belong to; `blogdata run` then publishes what they touch."""
    from assets import corrected
    from evidence.events import EventLog
    from lake.lake import Lake
    from patterns.error_management import dead_letter_replay
    from resources.lake import zone_of
    from services.config import load

    if not file.is_file():
        raise ConfigurationError(what="there is no such file", where=str(file), next_step="name a file of corrections")
    settings = load()
    with file.open("rb") as lines:
        corrections = dead_letter_replay.read_corrections(lines, str(file))
    judged = corrected.of_one_table(corrections)
    hours = sorted({correction.arrival_hour for correction in corrections})
    lake = Lake(root=str(settings.lake))
    table = lake.caught_up(judged.letters.dataset)
    columns = ["source_file", "source_offset"]
    dead = (
        []
        if table is None
        else table.to_pyarrow_table(columns=columns, filters=[("arrival_hour", "in", hours)]).to_pylist()
    )
    result = dead_letter_replay.land_corrections(
        corrections,
        [(row["source_file"], row["source_offset"]) for row in dead],
        settings.landing,
        letters=judged.letters,
        awaited=lambda: _awaited(settings.home),
        convention=settings.ready,
    )
    stale = corrected.stale_after(corrections, judged, zone_of(settings), EventLog(lake))
    if as_json:
        say_json({"files": result.files, "landed": result.landed, "stale": stale})
        return
    there = len(result.files) - len(result.landed)
    typer.echo(f"{len(result.landed)} correction(s) landed" + (f", {there} were there already" if there else ""))
    if not stale:
        typer.echo("nothing is stale because of them: they are published")
        return
    typer.echo("stale now:")
    for dataset, keys in stale.items():
        shown = ", ".join(keys) if len(keys) <= _NAMED else f"{keys[0]} … {keys[-1]} ({len(keys)})"
        typer.echo(f"  {dataset:<26} {shown}")
    typer.echo("publish all of it: blogdata run")


def _awaited(home: Path) -> Sequence[str]:
    """List the landed files of the streams' unfinished batches."""
    from assets.streams import STREAMS
    from patterns.error_management.checkpointer import checkpoints

    # Only the newest checkpoint is resumed.
    newest = [one for name in STREAMS for one in checkpoints(home / "checkpoints", name)[-1:]]
    return [path for checkpoint in newest if checkpoint.identity for path in checkpoint.unfinished()]


def _require_log(file: Path) -> None:
    """Refuse a file that is no access log: its lines would all be dead letters, and hold back their hour."""
    from patterns.ingestion.combined_log import hour_of_combined
    from patterns.ingestion.whole_files import content

    try:
        with content(file) as log:
            first = log.read(_EXAMINED_BYTES).split(b"\n")
    except (EOFError, OSError, zlib.error) as error:
        raise ConfigurationError(
            what=f"the file cannot be read: {error}",
            where=str(file),
            next_step="name an undamaged copy of it, or a decompressed one",
        ) from error
    if any(first) and not any(map(hour_of_combined, first)):
        raise ConfigurationError(
            what="no line at its beginning has the time of an access log, like [05/Jan/2026:03:04:05 +0000]",
            where=str(file),
            next_step="name a log in Combined Log Format, the default of nginx and Apache",
        )


def _writable(given: Path | None) -> Path:
    target = _landing(given)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            what=f"the landing zone cannot be written: {error.strerror}",
            where=str(target),
            next_step="name a folder that you may write",
        ) from error
    return target


def _landing(given: Path | None) -> Path:
    if given is not None:
        return given
    from services.config import load

    return load().landing


def _day(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError as error:
        raise ConfigurationError(
            what=f"'{text}' is no day",
            where="--start",
            next_step="write it as YYYY-MM-DD, for example 2026-01-05",
        ) from error


@contextmanager
def _progress(*, quiet: bool) -> Iterator[_Report]:
    if quiet:
        yield _Report()
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("hours", total=None)
            yield _Bar(bar, task)
    else:
        yield _Plain()


class _Report:
    """A report that prints nothing."""

    def __call__(self, done: int, total: int) -> None:
        """Report the number of hours done."""


class _Plain(_Report):
    """A line for every simulated day."""

    def __call__(self, done: int, total: int) -> None:
        if done % 24 == 0:
            typer.echo(f"day {done // 24} of {total // 24}", err=True)


class _Bar(_Report):
    """A bar on the terminal."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)
