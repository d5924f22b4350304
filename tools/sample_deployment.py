"""A small deployment to measure: two simulated days with faults and late rows, an access log, two runs and a stream."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

DAYS = 2
VISITS_PER_DAY = 2_000
FAULTS = {
    "late": 0.05,
    "duplicate": 0.02,
    "conflict": 0.005,
    "not_json": 0.005,
    "truncated": 0.002,
    "missing_field": 0.004,
    "wrong_type": 0.002,
    "future_time": 0.002,
    "epoch_time": 0.002,
    "not_utf8": 0.001,
}
"""Higher rates than those of a healthy feed, so that few rows have every fault."""
FIRST = "2026-01-05"
SECOND = "2026-01-06"
HALF = f"{SECOND}T12"
"""First hour of arrival that the second run takes in."""
DESCRIPTION = (
    f"{DAYS} simulated days of {VISITS_PER_DAY:,} visit events a day with faults and late rows, the last twelve hours "
    "landed after the first run, the users of the first day delivered again, an access log of four hours, two runs "
    "and one pass of the stream"
)
_LOG_BEGINS = datetime(2026, 1, 7, tzinfo=timezone.utc)
_LOG_HOURS = 4
_VISITORS = 40
_PATHS = ("/", "/archive", "/about", "/2026/01/spark", "/2026/01/delta", "/style.css", "/logo.png", "/feed/")
_WEIGHTS = (6, 4, 2, 8, 6, 8, 6, 2)
_BROWSERS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
)
_KEPT = ("BLOGDATA_JARS", "BLOGDATA_JAVA", "BLOGDATA_MAVEN_MIRROR")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A deployment in a folder of its own, used through the command line.

    Args:
        home: Its `BLOGDATA_HOME`.
        seed: Seed of everything random in it.
    """

    home: Path
    seed: int

    def command(self, *arguments: str) -> str:
        """Run a command of `blogdata` for this deployment; return its output.

        Raises:
            CalledProcessError: The command failed; its messages are on standard error.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("BLOGDATA_") or name in _KEPT}
        program = str(Path(sys.executable).with_name("blogdata"))
        done = subprocess.run(
            [program, *arguments],
            env={**own, "BLOGDATA_HOME": str(self.home)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    def fill(self) -> None:
        """Land the sample in two parts, with a run after each, and let the stream ingest it."""
        landing, source = self.home / "landing", self.home / "source"
        self._simulate(source)
        _land(source, landing, [f"visits/date={FIRST}", *_hours(source, until=HALF), *_deliveries(FIRST)])
        self.command("run")
        _land(source, landing, [*_hours(source, since=HALF), *_deliveries(SECOND)])
        _deliver_again(landing / _deliveries(FIRST)[0])
        log = self.home / "access.log"
        log.write_text("".join(log_lines(self.seed)), encoding="utf-8")
        self.command("land", "logs", str(log))
        self.command("run")
        self.command("stream", "--once")

    def _simulate(self, source: Path) -> None:
        rates = self.home / "faults.toml"
        rates.write_text("".join(f"{name} = {rate}\n" for name, rate in FAULTS.items()), encoding="utf-8")
        size = ["--days", str(DAYS), "--visits-per-day", str(VISITS_PER_DAY), "--seed", str(self.seed)]
        self.command(
            "land", "simulate", *size, "--begin", FIRST, "--faults", str(rates), "--landing", str(source), "--json"
        )


@contextmanager
def filled(home: Path, *, seed: int) -> Iterator[Sample]:
    """Make the sample deployment, and stop its services in the end.

    Args:
        home: An empty folder.
        seed: Seed of everything random.
    """
    sample = Sample(home=home, seed=seed)
    try:
        sample.fill()
        yield sample
    finally:
        sample.command("down")


def log_lines(seed: int, *, hours: int = _LOG_HOURS) -> Iterator[str]:
    """Write an access log in Combined Log Format: pages, assets, feeds, crawlers, and visits across hours.

    Args:
        seed: Seed of the visitors and their requests; the same seed writes the same lines.
        hours: Length of the log.
    """
    draw = random.Random(seed)
    visitors = [(f"198.51.100.{number}", draw.choice(_BROWSERS)) for number in range(1, _VISITORS + 1)]
    moment, end = _LOG_BEGINS, _LOG_BEGINS + timedelta(hours=hours)
    while (moment := moment + timedelta(seconds=draw.randint(5, 60))) < end:
        address, agent = draw.choice(visitors)
        path = draw.choices(_PATHS, _WEIGHTS)[0]
        method, status = draw.choices([("GET", 200), ("HEAD", 200), ("GET", 404)], [90, 4, 6])[0]
        time = moment.strftime("%d/%b/%Y:%H:%M:%S +0000")
        yield f'{address} - - [{time}] "{method} {path} HTTP/1.1" {status} 512 "-" "{agent}"\n'


def _hours(source: Path, *, since: str = f"{SECOND}T00", until: str = f"{SECOND}T99") -> list[str]:
    """List the folders of the second day's hours in a span."""
    hours = sorted((source / "visits" / f"date={SECOND}").glob("hour=*"))
    return [str(hour.relative_to(source)) for hour in hours if since <= f"{SECOND}T{hour.name[5:]}" < until]


def _deliveries(day: str) -> list[str]:
    return [f"{table}/date={day}" for table in ("users", "devices")]


def _land(source: Path, landing: Path, folders: Sequence[str]) -> None:
    for folder in folders:
        shutil.copytree(source / folder, landing / folder)


def _deliver_again(folder: Path) -> None:
    """Deliver users again, one of them with another address; the flag is written last."""
    flag = folder / "_SUCCESS"
    flag.unlink()
    for file in (file for file in sorted(folder.iterdir()) if file.is_file()):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("@", "@mail.", 1), encoding="utf-8")
    flag.touch()
