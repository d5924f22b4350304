"""(u) Persons forgotten: what 1, 100 and 1,000 of them cost, by the files that have lines of theirs."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Result, Size, say
from blogdata.cli.pipeline import Pipeline
from blogdata.erasure import persons as found_persons
from blogdata.erasure.journal import Erasure, Journal
from blogdata.operations import forget_steps
from blogdata.orchestration.landing import bounds_of
from blogdata.patterns.ingestion import erased_lines
from blogdata.suppression.identifiers import Identifiers

PERSONS = (1, 100, 1000)
VISITS, DAYS = 1_000_000, 10
PUBLISHED, PUBLISHED_DAYS = 100_000, 3
Figures = dict[str, int]


def measure(bench: Bench, size: Size) -> Result:
    """Measure once: landed lines at this many visits, and the whole erasure at a tenth of them."""
    visits = size.visits or VISITS
    cases = [_landed(bench, visits), _whole(bench, visits * PUBLISHED // VISITS)]
    return Result(letter="u", title="Persons forgotten", cases=cases)


def _landed(bench: Bench, visits: int) -> Case:
    """Find the persons and overwrite their lines, in a landing zone of its own for each number of them."""
    landing = bench.simulated(visits, days=DAYS)
    seconds: dict[str, list[float]] = {}
    facts: dict[str, Figures] = {}
    for count in PERSONS:
        made = bench.deployment("forgotten", str(count))
        # A changed file takes the place of its link: the shared landing zone stays as it is.
        shutil.copytree(landing, made.settings.landing, copy_function=os.link, dirs_exist_ok=True)
        began = time.perf_counter()
        erasure = _find(made, count)
        seconds[f"find, {_persons(count)}"] = [round(time.perf_counter() - began, 2)]
        forget_steps.suppress(made.settings, erasure)
        began = time.perf_counter()
        forget_steps.overwrite(made.settings, erasure)
        seconds[f"overwrite, {_persons(count)}"] = [round(time.perf_counter() - began, 2)]
        facts[_persons(count)] = _touched(made, landing)
        made.remove()
    return Case(name=f"landed lines of {visits:,} visits", seconds=seconds, facts={"the landing zone": facts})


def _whole(bench: Bench, visits: int) -> Case:
    """Forget more and more persons of one published deployment, step by step."""
    made = bench.deployment("forgotten", "published")
    landing = bench.simulated(visits, days=PUBLISHED_DAYS)
    shutil.copytree(landing, made.settings.landing, copy_function=os.link, dirs_exist_ok=True)
    outcome = made.run()
    say(f"  published in {outcome.seconds:.0f} s")
    seconds: dict[str, list[float]] = {}
    facts: dict[str, Figures] = {}
    for count in PERSONS:
        erasure = _find(made, count)
        journal = Journal.of(made.settings)
        journal.begin(erasure)
        began = time.perf_counter()

        def note(step: str, *, count: int = count) -> None:
            nonlocal began
            now = time.perf_counter()
            seconds[f"{step}, {_persons(count)}"] = [round(now - began, 2)]
            began = now

        forget_steps.go_on(made.settings, journal, note, Pipeline(made.settings, quiet=True))
        facts[_persons(count)] = _touched(made, landing)
    made.remove()
    name = f"a deployment with {visits:,} visits, published in {outcome.seconds:.0f} s"
    return Case(name=name, seconds=seconds, facts={"the landing zone, those before included": facts})


def _find(made: Deployment, count: int) -> Erasure:
    """Find all that delivered users are known by, who are spread evenly over their ids."""
    landing = made.settings.landing
    users = sorted(
        {
            json.loads(raw)["id"]
            for file in sorted(landing.glob("users/*/users.json"))
            for offset, line in erased_lines.lines(file)
            if (raw := erased_lines.raw_of(offset, line)) and not erased_lines.is_erased(raw)
        }
    )
    chosen = frozenset(users[at * len(users) // count] for at in range(count))
    files, _ = found_persons.landed_files(landing, bounds_of(made.settings))
    found = found_persons.find(landing, files, Identifiers(user_ids=chosen), shared_stays=True)
    return Erasure(persons=found.persons, at=time.time())


def _touched(made: Deployment, before: Path) -> Figures:
    """Count the files of a landing zone that are no longer those of the shared one, and the lines erased in them."""
    found = made.settings.landing.rglob("*")
    files = [file for file in found if file.is_file() and not file.name.startswith(("_", "."))]
    changed = [file for file in files if not file.samefile(before / file.relative_to(made.settings.landing))]
    return {
        "files": len(files),
        "files with lines of theirs": len(changed),
        "MiB of these": sum(file.stat().st_size for file in changed) >> 20,
        "lines erased": sum(erased_lines.count(file)[0] for file in changed),
    }


def _persons(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} persons"
