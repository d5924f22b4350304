"""`blogdata land`: puts data into the landing zone, simulated or from access logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import Json, console, errors, say_json
from blogdata.errors import ConfigurationError, PlatformError

if TYPE_CHECKING:
    from blogdata.contract.contract import Contract
    from blogdata.landing.dead_letter import Correction
    from blogdata.simulator.truth import Truth

app = typer.Typer(help="Put data into the landing zone.", no_args_is_help=True, add_completion=False)


@app.command()
def simulate(
    days: Annotated[int | None, typer.Option(min=1, help="Days to simulate.")] = None,
    visits_per_day: Annotated[
        int | None, typer.Option(min=0, help="Visit events a day on average, before faults.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed: the same options give the same bytes.")] = None,
    faults: Annotated[Path | None, typer.Option(help="TOML file of `fault = rate`.")] = None,
    begin: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="First day; without it the days are those that have just ended."),
    ] = None,
    ads: Annotated[bool, typer.Option(help="Land the ads that visitors were shown, too.")] = True,
    hours: Annotated[
        int | None, typer.Option(min=1, help="Add so many hours to the simulation there is, and nothing else.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate a blog's visits, users, devices and displayed ads, with known truth beside them in `_truth/`.

    A simulation needs --days, --visits-per-day and --seed. --hours adds to it and changes no landed byte. Repeat a
    command that was interrupted.
    """
    from blogdata.operate.config import load
    from blogdata.simulator import landing_zone as simulator
    from blogdata.simulator.spec import FaultRates, SimulationSpec, load_faults

    target = load().landing
    begun = time.monotonic()
    given = {"--days": days, "--visits-per-day": visits_per_day, "--seed": seed}
    if hours is not None:
        others = {**given, "--faults": faults, "--begin": begin}
        if wrong := [name for name, value in others.items() if value is not None]:
            raise ConfigurationError(
                what=f"what is added is a part of the simulation there is: {', '.join(wrong)} cannot change it",
                where="blogdata land simulate",
                next_step="leave them out; or simulate into another landing zone",
            )
        with _progress(quiet=as_json) as report:
            truth = simulator.add(hours, target, report, now=datetime.now(timezone.utc))
        _say_simulated(truth, target, begun, added=hours, as_json=as_json)
        return
    if days is None or visits_per_day is None or seed is None:
        raise ConfigurationError(
            what=f"{', '.join(name for name, value in given.items() if value is None)} must be given",
            where="blogdata land simulate",
            next_step="name all three, like --days 3 --visits-per-day 100000 --seed 7; or --hours 1 for a further hour",
        )
    spec = SimulationSpec(
        days=days,
        visits_per_day=visits_per_day,
        seed=seed,
        # The same command continues tomorrow what is interrupted today.
        start=begin.date() if begin else simulator.begin_of(target) or _today() - timedelta(days=days),
        faults=load_faults(faults) if faults else FaultRates(),
        ads=ads,
    )
    _make_writable(target)
    with _progress(quiet=as_json) as report:
        truth = simulator.simulate(spec, target, report)
    _say_simulated(truth, target, begun, added=0, as_json=as_json)


def _today() -> date:
    return datetime.now(timezone.utc).date()


def _say_simulated(truth: Truth, target: Path, begun: float, *, added: int, as_json: bool) -> None:
    seconds = time.monotonic() - begun
    new = [hour.arrival_hour for hour in truth.hours[len(truth.hours) - added :]]
    figures = ("lines", "bytes", "valid", "dead", "late", "unique", "duplicates", "conflicts")
    result = {
        "landing": str(target),
        "already_there": truth.already_there,
        "hours": len(truth.hours),
        "added": new,
        **{name: truth.total(name) for name in figures},
        **({} if truth.ads is None else {"ads": {name: truth.ads.total(name) for name in figures}}),
        "seconds": round(seconds, 1),
    }
    if as_json:
        say_json(result)
    elif truth.already_there:
        console.print(f"{target} holds this simulation already: nothing was changed")
    else:
        if new:
            console.print(f"added: {new[0]} … {new[-1]}" if added > 1 else f"added: {new[0]}")
        for kind, totals in (("visits", truth), ("ads", truth.ads)):
            if totals is not None:
                counts = [f"{totals.total(name):,} {name}" for name in figures if name != "bytes"]
                console.print(f"{kind}: {', '.join(counts)}")
        console.print(f"{target}: {seconds:.1f} s; the truth is in {target / '_truth'}")


@app.command()
def logs(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Access logs, plain or compressed by gzip, bzip2, xz or zstd, in any order; - for standard input.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Put access logs into the landing zone, byte for byte and verified.

    The format is found for each line, among those with a name and those that [logs] format declares. A log is known by
    its content: what has landed is not landed again, whatever its name is by now. A file that is no access log is
    refused, and the others land.
    """
    from blogdata.cli.land_logs import land_logs
    from blogdata.landing.log_splitter import LOGS
    from blogdata.landing.suppression_list import erase_known
    from blogdata.operate.config import load

    settings = load()
    target = settings.landing
    _make_writable(target)
    results = []
    # A log that has grown is known by its landed copy, which has no line of a forgotten person any more.
    prepare = lambda copy: erase_known(settings, target, [copy])  # noqa: E731
    for result in land_logs(files, target / LOGS, settings.logs, prepare):
        results.append(result)
        # What was refused is told at the end, with what to do.
        if not as_json and result.error is None:
            console.print(str(result))
    if as_json:
        say_json([result.as_json() for result in results])
    refused = [result.error for result in results if result.error is not None]
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise ConfigurationError(
            what=f"{len(refused)} files did not land: " + "; ".join(error.what for error in refused),
            where=", ".join(error.where for error in refused),
            next_step="all others landed; mend these, or leave them out, and repeat the command: nothing lands twice",
        )


@app.command("replay")
def replay_corrections(
    file: Annotated[Path, typer.Argument(help="JSON Lines: source_file, source_offset (of the dead letter), payload.")],
    as_json: Json = False,
) -> None:
    """Land corrected dead letters in the hours they belong to; `blogdata run` then publishes what they touch."""
    from blogdata.landing import dead_letter
    from blogdata.operate.config import load
    from blogdata.table.lake import Lake

    if not file.is_file():
        raise ConfigurationError(what="there is no such file", where=str(file), next_step="name a file of corrections")
    settings = load()
    with file.open("rb") as lines:
        corrections = dead_letter.read_corrections(lines, str(file))
    letters = _letters_of(corrections)
    hours = sorted({correction.arrival_hour for correction in corrections})
    lake = Lake(root=str(settings.lake))
    columns = ("source_file", "source_offset")
    dead = lake.columns(letters.dataset, columns, only={"arrival_hour": hours}).to_pylist()
    files, landed = dead_letter.land_corrections(
        corrections,
        [(row["source_file"], row["source_offset"]) for row in dead],
        settings.landing,
        letters=letters,
        convention=settings.ready,
    )
    if as_json:
        say_json({"files": files, "landed": landed})
        return
    repeated = len(files) - len(landed)
    console.print(f"{len(landed)} correction(s) landed" + (f", {repeated} were there already" if repeated else ""))
    console.print("publish what they touch: blogdata run")


def _letters_of(corrections: Sequence[Correction]) -> Contract:
    from quality.contracts import CONTRACTS

    named = sorted({correction.table for correction in corrections})
    if len(named) != 1 or named[0] not in _LETTERS:
        raise PlatformError(
            what=f"the corrections are of {' and '.join(named) or 'no lines'}",
            where="source_file",
            next_step=f"write those of {' or of '.join(_LETTERS)} into a file; land the delivery of other tables again",
        )
    return CONTRACTS[_LETTERS[named[0]]]


_LETTERS = {"visits": "bronze.dead_letters", "ads": "bronze.ad_dead_letters"}
"""Tables whose lines are corrected one by one, to their dead letters."""


def _make_writable(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what, step = f"the landing zone cannot be written: {error.strerror}", "name a folder that you may write"
        raise ConfigurationError(what=what, where=str(target), next_step=step) from error


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress

    with Progress(console=errors, disable=quiet or not sys.stderr.isatty()) as bar:
        task = bar.add_task("hours", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
