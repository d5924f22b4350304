"""The environment of the benchmarks: one warm Spark server, simulated landing zones, and temporary lakes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blogdata.cli.output import Outcome
from blogdata.cli.pipeline import Pipeline
from blogdata.operate import config, spark_attached, spark_connect
from blogdata.operate.config import Settings

_OWN = ("BLOGDATA_LANDING", "BLOGDATA_LAKE", "SPARK_REMOTE")


class RunFailed(Exception):
    """A measured run failed, so its time is meaningless."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A home with its lake and landing zone, on the benchmarks' Spark server."""

    settings: Settings

    def run(self) -> Outcome:
        """Run as `blogdata run` does."""
        return self._sound(Pipeline(self.settings, quiet=True).run())

    def run_again(self, dataset: str) -> Outcome:
        """Compute all partitions of a dataset again, as `blogdata run --select` of a span does."""
        return self._sound(Pipeline(self.settings, quiet=True).run(select=[dataset]))

    def command(self, *words: str) -> None:
        """Run a command of `blogdata`."""
        places = {"BLOGDATA_HOME": str(self.settings.home), "BLOGDATA_LANDING": str(self.settings.landing)}
        command = [sys.executable, "-m", "blogdata", *words]
        subprocess.run(command, env={**os.environ, **places}, check=True, stdout=subprocess.PIPE)

    def simulate(self, days: int, visits_per_day: int, seed: int, begin: datetime, *, ads: bool = False) -> None:
        options = ["--days", f"{days}", "--visits-per-day", f"{visits_per_day}", "--seed", f"{seed}"]
        self.command("land", "simulate", *options, "--begin", f"{begin:%Y-%m-%d}", "--ads" if ads else "--no-ads")

    def _sound(self, outcome: Outcome) -> Outcome:
        if not outcome.ok or not outcome.steps:
            raise RunFailed(f"{self.settings.home}: {'; '.join(outcome.problems) or 'nothing ran'}")
        return outcome

    def remove(self) -> None:
        """Close its Spark session, and delete it, except a shared landing zone."""
        spark_attached.drop(self.settings)
        shutil.rmtree(self.settings.home, ignore_errors=True)


class Bench:
    """The folder of the benchmarks, and their shared Spark server."""

    def __init__(self) -> None:
        # Only the home of the user's deployment is used; its data must be neither measured nor replaced.
        for name in _OWN:
            os.environ.pop(name, None)
        self.home = config.load().home / "bench"
        self.settings = config.load(overrides={"BLOGDATA_HOME": str(self.home)})
        self._url: str | None = None
        self._session: Any = None
        self._deployments: list[Deployment] = []

    @property
    def url(self) -> str:
        """Address of the server, started when it is first needed."""
        if self._url is None:
            self._url = spark_connect.running_server(self.settings).url
        return self._url

    @property
    def spark(self) -> Any:
        """A separate session for the hand-written peers."""
        if self._session is None:
            self._session = spark_attached.attach(self.url)
        return self._session

    def close(self) -> None:
        """Stop the server and remove all files except landing zones, which take long to simulate."""
        for deployment in self._deployments:
            deployment.remove()
        if self._session is not None:
            spark_attached.release(self._session)
        spark_connect.stop(self.settings)
        shutil.rmtree(self.home / "work", ignore_errors=True)

    def folder(self, *names: str) -> Path:
        """Create an empty folder to work in."""
        folder = self.home.joinpath("work", *names)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def deployment(self, *names: str, landing: Path | None = None) -> Deployment:
        """Make an empty deployment, with its own landing zone or a shared one."""
        home = self.folder(*names)
        lines = ["[spark]", f"remote = {json.dumps(self.url)}"]
        if landing is not None:
            lines += ["[paths]", f"landing = {json.dumps(str(landing))}"]
        (home / "blogdata.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._deployments.append(Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)})))
        return self._deployments[-1]

    def simulated(self, visits: int, days: int = 3, *, ads: bool = False) -> Path:
        """Simulate a landing zone with about this many visits, or reuse an existing one."""
        landing = self.home / "landing" / f"{visits}-in-{days}-days{'-with-ads' if ads else ''}"
        begin = datetime(2026, 1, 5, tzinfo=timezone.utc)
        shared = Deployment(settings=replace(self.settings, landing=landing))
        shared.simulate(days, visits // days, 7, begin, ads=ads)
        return landing
