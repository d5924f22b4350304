"""The ways to break a deployment: what each changes in the landing zone or on the machine, and the runs after it."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.errors import ConfigurationError
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import readiness_marker
from blogdata.patterns.ingestion.whole_files import write_whole
from blogdata.planning.arrivals import Arrivals
from blogdata.planning.plan import ASKED, Plan, Planner
from blogdata.planning.snapshot import Snapshot, landed
from blogdata.publish.partitions import Grain, start_of
from blogdata.services import spark_connect
from blogdata.services.config import Settings
from quality.contracts import CONTRACTS, GRAPH
from resources.zone import zone_of

if TYPE_CHECKING:
    from blogdata.services.dagster_internals import SerializableErrorInfo

from blogdata.cli.outcome import Outcome

ROWS = 20
"""Number of lines that a scene sends."""
DEADLINE = timedelta(hours=CONTRACTS["bronze.visits"].freshness_hours or 0)
"""Time after the end of an hour by which its producer must have written the flag."""
_MANY = 6
_NEEDED = ("visit_id", "user_id", "page")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(kw_only=True)
class Story:
    """The messages of a scene, in order, for the person who watches.

    Args:
        settings: Settings of the broken copy.
        draw: Generator of everything random.
        say: Called with each message as it happens.
        messages: All messages so far.
        runs: Report of each run: its plan, retries, problems and publications.
        seen: Ids of the runs whose retries were reported.
    """

    settings: Settings
    draw: random.Random
    say: Callable[[str], None]
    messages: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    @property
    def events(self) -> EventLog:
        """The event log of the copy."""
        return EventLog(Lake(root=str(self.settings.lake)))

    def narrate(self, text: str) -> None:
        """Record and print a message."""
        self.messages.append(text)
        self.say(text)

    @property
    def planner(self) -> Planner:
        """A planner on the current state of the copy."""
        return Planner(graph=GRAPH, look=Snapshot(zone_of(self.settings), self.events))

    def run(self, why: str, plan: Plan | None = None) -> Outcome:
        """Run as `blogdata run` does, or carry out a plan; report its plan, retries, problems and publications.

        Args:
            why: Message before the run.
            plan: Plan of what runs again; None runs what is stale.
        """
        from blogdata.cli.pipeline import Pipeline

        planned = (plan or self.planner.outstanding()).runs
        self.narrate(why)
        for run in planned:
            self.narrate(f"  planned: {', '.join(run.datasets)} {_span(run.keys)}")
        before = self._published()
        pipeline = Pipeline(self.settings, quiet=True, command="blogdata break")
        outcome = pipeline.run() if plan is None else pipeline.run_plan(plan)
        retried = _retries(self.settings, self.seen)
        for text in retried:
            self.narrate(f"a step met a fault that may pass, and was run again: {text}")
        for problem in outcome.problems:
            self.narrate(f"the run stopped, and says: {problem}")
        again = _again(before, self._published())
        for dataset, keys in again.items():
            self.narrate(f"  published again: {dataset} {_span(keys)}")
        self.narrate(f"the run {'ended well' if outcome.ok else 'FAILED'}: {outcome.rows:,} rows published")
        self.runs.append(
            {
                "why": why,
                "planned": [{"datasets": list(run.datasets), "partitions": list(run.keys)} for run in planned],
                "retried": retried,
                "problems": outcome.problems,
                "rows": outcome.rows,
                "published": [step["dataset"] for step in outcome.steps],
                "published_again": again,
            }
        )
        return outcome

    def _published(self) -> dict[str, dict[str, int]]:
        return {
            name: {key: entry.version for key, entry in self.events.publications(name).items()} for name in CONTRACTS
        }


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One way to break a deployment.

    Args:
        name: Name on the command line.
        title: Title in the menu.
        play: Function that plays it.
        own_server: Whether it needs a Spark server that belongs to the deployment.
    """

    name: str
    title: str
    play: Callable[[Story], None]
    own_server: bool = False

    def require(self, settings: Settings) -> None:
        """Check that the scene is possible in a deployment, before anything is copied.

        Args:
            settings: Settings of the deployment.

        Raises:
            ConfigurationError: The Spark server does not belong to the deployment.
        """
        if self.own_server and settings.spark.mode != "local":
            raise ConfigurationError(
                what="only a Spark server of this deployment's own can be killed",
                where=f"spark mode {settings.spark.mode}",
                next_step="unset SPARK_REMOTE and spark.mode, or choose another way: blogdata break --list",
            )


def kill_writer(story: Story) -> None:
    """Kill -9 the Spark server after the data files of a publication are written and before its log entry is."""
    dataset = story.draw.choice(["silver.visits", "bronze.visits", "gold.page_stats", "silver.visits_enriched"])
    key = story.draw.choice(sorted(story.events.publications(dataset)))
    table = Path(Lake(root=str(story.settings.lake)).path(dataset))
    before = _newest(table)
    plan = story.planner.plan_of_replay({dataset: {key: ASKED}})
    spark_connect.running_server(story.settings)
    with _killer(story, table) as killed:
        story.run(f"{dataset} {key} is run again, with all that has read it", plan)
    if not killed:
        story.narrate("the publication was over before the server could be killed; another --seed tries elsewhere")
    published = _newest(table) - before
    story.narrate(f"{dataset} has {published} new version{'' if published == 1 else 's'}")


def bad_rows(story: Story) -> None:
    """Send lines that are not events."""
    hour, folder = _newest_hour(story)
    good = [json.dumps(event) for event in _events(story, folder, ROWS)]
    broken: list[bytes] = []
    for number, line in enumerate(good):
        event = json.loads(line)
        broken.append(
            [
                line[: len(line) // 2].encode(),
                b"<html>502 Bad Gateway</html>",
                json.dumps({**event, "user_id": 42}).encode(),
                json.dumps({name: value for name, value in event.items() if name != "page"}).encode(),
                json.dumps({**event, "event_time": "yesterday"}).encode(),
                json.dumps({**event, "event_time": "2999-01-01T00:00:00Z"}).encode(),
                b"\xff\xfe" + line.encode(),
                (line + line).encode(),
            ][number % 8]
        )
    _land(folder, f"visits-broken-{story.draw.randrange(10**6)}.json", broken)
    story.narrate(f"{len(broken)} lines that are no events arrive in {hour}")
    story.run("the next run takes them in")


def late_rows(story: Story) -> None:
    """Send events of hours that were published long ago."""
    hour, folder = _newest_hour(story)
    published = sorted(key for key in story.events.publications("silver.visits") if key < hour)
    hours = story.draw.sample(published, min(3, len(published))) or [hour]
    late = []
    for number, event in enumerate(_events(story, folder, ROWS)):
        start = start_of(hours[number % len(hours)], Grain.HOUR)
        time_ = start + timedelta(seconds=story.draw.randrange(3600))
        late.append({**event, "event_time": time_.strftime(_TIME)})
    _land(folder, f"visits-late-{story.draw.randrange(10**6)}.json", [json.dumps(event).encode() for event in late])
    story.narrate(f"{len(late)} events of {', '.join(sorted(hours))} arrive in {hour}, which is complete and published")
    story.run("the next run takes them in")


def dropped_column(story: Story) -> None:
    """Send events without a required field."""
    hour, folder = _next_hour(story)
    events = _events(story, _newest_hour(story)[1], ROWS, at=hour)
    for event in events:
        event.pop("user_id")
    _land(folder, "visits.json", [json.dumps(event).encode() for event in events])
    readiness_marker.mark(folder)
    story.narrate(f"{len(events)} events of {hour} come without user_id")
    if not story.run("the next run takes them in").ok:
        story.run("somebody has looked, and runs it again")


def stopped_clock(story: Story) -> None:
    """Send events of a stopped clock, and write the flag of their delivery late."""
    last, newest = _newest_hour(story)
    hour, folder = _next_hour(story)
    stopped = start_of(last, Grain.HOUR) + timedelta(minutes=59)
    events = [{**event, "event_time": stopped.strftime(_TIME)} for event in _events(story, newest, ROWS, at=hour)]
    file = _land(folder, "visits.json", [json.dumps(event).encode() for event in events])
    then = time.time() - 3 * 3600
    os.utime(file, (then, then))
    story.narrate(f"{len(events)} events of {hour} arrive, all of {stopped.strftime(_TIME)}, and their flag does not")
    arrivals = Arrivals.of(CONTRACTS["bronze.visits"], story.settings.landing)
    overdue = arrivals.overdue(story.events, datetime.now(timezone.utc))
    story.narrate(overdue.warning or "nothing is overdue")
    story.run("a run now reads nothing of it: the hour is not complete")
    readiness_marker.mark(folder)
    story.narrate("the partner delivers its flag at last; its clock still stands")
    story.run("the next run takes the hour in; its events belong to an older one")


SCENES = (
    Scene(
        name="kill-writer",
        title="kill the Spark server in the middle of a publication",
        play=kill_writer,
        own_server=True,
    ),
    Scene(name="bad-rows", title="send lines that are no events", play=bad_rows),
    Scene(name="late-rows", title="send events of hours that are published already", play=late_rows),
    Scene(name="dropped-column", title="a producer stops sending a field", play=dropped_column),
    Scene(name="stopped-clock", title="a partner's clock stands still, and its flag does not come", play=stopped_clock),
)


@contextmanager
def _killer(story: Story, table: Path) -> Iterator[list[int]]:
    """Watch a table, and kill the server as soon as it has files without a log entry."""
    known = set(table.rglob("*.parquet"))
    killed: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        before = _newest(table)
        while not ended.is_set() and not killed:
            new = {file for file in table.rglob("*.parquet") if "_delta_log" not in file.parts} - known
            if new:
                pid = spark_connect.status(story.settings).pid
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    entry = "its log entry not" if _newest(table) == before else "so was its log entry"
                    story.narrate(f"the Spark server (process {pid}) is killed: {len(new)} files are written, {entry}")
            ended.wait(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield killed
    finally:
        ended.set()
        watcher.join()


def _newest(table: Path) -> int:
    names = [file.stem for file in (table / "_delta_log").glob("*.json")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _newest_hour(story: Story) -> tuple[str, Path]:
    parts = [part for part in landed(zone_of(story.settings), "visits", Grain.HOUR) if part.files]
    usable = [part.key for part in parts if any(name.name.endswith(".json") for name in part.files)]
    if not usable:
        raise ConfigurationError(
            what="no hour with plain JSON events has landed",
            where=str(story.settings.landing / "visits"),
            next_step="break a simulated deployment: BLOGDATA_HOME=/tmp/blog blogdata break",
        )
    return usable[-1], _folder(story, usable[-1])


def _next_hour(story: Story) -> tuple[str, Path]:
    last = max(part.key for part in landed(zone_of(story.settings), "visits", Grain.HOUR))
    start = start_of(last, Grain.HOUR) + timedelta(hours=1)
    if start + timedelta(hours=1) + DEADLINE > datetime.now(timezone.utc):
        raise ConfigurationError(
            what=f"the hour after {last} is not over",
            where=str(story.settings.landing / "visits"),
            next_step="wait, or break a deployment whose data is older",
        )
    hour = start.strftime("%Y-%m-%dT%H")
    return hour, _folder(story, hour)


def _folder(story: Story, hour: str) -> Path:
    return story.settings.landing / "visits" / f"date={hour[:10]}" / f"hour={hour[11:]}"


def _events(story: Story, folder: Path, count: int, *, at: str | None = None) -> list[dict[str, Any]]:
    """Generate events like those of an hour, with new visit ids; in the hour `at` if given."""
    there = []
    for file in sorted(folder.glob("[!_.]*.json")):
        for line in file.read_bytes().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and all(isinstance(event.get(name), str) for name in _NEEDED):
                there.append(event)
    if not there:
        raise ConfigurationError(
            what="no event of the hour can be read",
            where=str(folder),
            next_step="land events first: blogdata land --help",
        )
    made = []
    for number in range(count):
        event = {**story.draw.choice(there), "visit_id": f"break-{story.draw.randrange(10**9)}-{number}"}
        hour = start_of(at or folder.parent.name[5:] + "T" + folder.name[5:], Grain.HOUR)
        event["event_time"] = (hour + timedelta(seconds=story.draw.randrange(3600))).strftime(_TIME)
        made.append(event)
    return made


def _land(folder: Path, name: str, lines: Sequence[bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / name, b"".join(line + b"\n" for line in lines))
    return folder / name


def _again(before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """Find the partitions that were published before and again since."""
    found = {
        name: sorted(key for key, version in keys.items() if before[name].get(key, version) != version)
        for name, keys in after.items()
    }
    return {name: keys for name, keys in found.items() if keys}


def _span(keys: Sequence[str]) -> str:
    if len(keys) < 2:
        return keys[0] if keys and keys[0] != WHOLE_TABLE else "whole"
    return ", ".join(keys) if len(keys) < _MANY else f"{keys[0]} … {keys[-1]} ({len(keys)})"


def _retries(settings: Settings, seen: set[str]) -> list[str]:
    import dagster as dg

    from blogdata.services import dagster_home

    found = []
    with dagster_home.open_instance(settings) as instance:
        for record in reversed(instance.get_run_records()):
            run = record.dagster_run.run_id
            if run in seen:
                continue
            seen.add(run)
            for entry in instance.all_logs(run, of_type=dg.DagsterEventType.STEP_UP_FOR_RETRY):
                event = entry.get_dagster_event()
                error: SerializableErrorInfo | None = event.step_retry_data.error
                said = "no reason" if error is None else " ".join((error.cause or error).message.split())
                found.append(f"{(event.step_key or '').replace('__', '.', 1)}: {said}")
    return found
