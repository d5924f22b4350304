"""(b) Three trivial assets in a chain: the platform compared with dagster-pyspark, in one process and in several.

Every measured command is a separate process, started as a person would start it: two Dagster runs in threads of one
process can deadlock, and a person also waits for a command's start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import dagster as dg

from benchmarks import chain_platform, chain_pyspark
from benchmarks.deployment import Bench, Deployment, RunFailed
from benchmarks.measure import Case, Result, Size, Target, ratio, say
from blogdata.services import spark_conf, spark_launch

STEPS = len(chain_platform.STEPS)
WARM_RUNS = 5
PLATFORM, IN_PROCESS, MULTIPROCESS = "platform", "dagster-pyspark in process", "dagster-pyspark multiprocess"


def measure(bench: Bench, size: Size) -> Result:
    """Measure; the partitions always have 1,000 rows."""
    say(f"three chained assets, {size.rounds} rounds")
    chains = Chains(bench)
    for number in range(size.rounds):
        kinds = (chains.platform, chains.in_process, chains.multiprocess)
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            kind(number)
    commands = Case(
        name="a command in a fresh process, per step",
        seconds=chains.commands,
        ratios=[ratio(chains.commands, MULTIPROCESS, PLATFORM), ratio(chains.commands, IN_PROCESS, PLATFORM)],
    )
    runs = Case(
        name="a run from its start to its end, per step",
        seconds=chains.runs,
        ratios=[ratio(chains.runs, MULTIPROCESS, PLATFORM), ratio(chains.runs, IN_PROCESS, PLATFORM)],
        facts={"warm": f"{PLATFORM} and {IN_PROCESS}: {WARM_RUNS} further runs of each command's process"},
    )
    targets = [
        Target(
            what="multiprocess / platform, command",
            bound="at least",
            limit=8.0,
            found=commands.ratios[0].value,
        ),
        Target(
            what="a warm step of the platform",
            bound="at most",
            limit=0.7,
            found=round(median(chains.runs[PLATFORM]), 3),
            unit=" s",
        ),
    ]
    return Result(letter="b", title="Three chained assets", cases=[commands, runs], targets=targets)


class Chains:
    """The three ways to run the chain, with the seconds of each step."""

    def __init__(self, bench: Bench) -> None:
        self.commands: dict[str, list[float]] = {PLATFORM: [], IN_PROCESS: [], MULTIPROCESS: []}
        self.runs: dict[str, list[float]] = {PLATFORM: [], IN_PROCESS: [], MULTIPROCESS: []}
        self._deployment: Deployment = bench.deployment("chain")
        chain_platform.prepare(bench.spark, self._deployment.settings)
        self._folder = bench.folder("chain-pyspark")
        chain_platform.source(bench.spark).write.format("delta").partitionBy("day").save(f"{self._folder}/source")
        self._environment = self._peers_environment(bench)

    def platform(self, number: int) -> None:
        """A new process on the warm server, and further runs in it."""
        home = str(self._deployment.settings.home)
        command = [sys.executable, "-m", "benchmarks.chain_platform", home, str(1 + WARM_RUNS)]
        self._in_one_process(PLATFORM, command, os.environ)

    def in_process(self, number: int) -> None:
        """A new process with one Java for the three steps, and further runs in it."""
        command = [sys.executable, "-m", "benchmarks.chain_pyspark", str(1 + WARM_RUNS)]
        self._in_one_process(IN_PROCESS, command, self._environment)

    def multiprocess(self, number: int) -> None:
        """`dagster job execute`: each step in a process with a Java of its own."""
        command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "benchmarks.chain_pyspark", "-j", "chain"]
        started = time.time()
        _output(command, self._environment)
        self.commands[MULTIPROCESS].append(_a_step(time.time() - started))
        with dg.DagsterInstance.from_config(self._environment["DAGSTER_HOME"]) as instance:
            (record,) = instance.get_run_records(dg.RunsFilter(job_name="chain"), limit=1)
        assert record.start_time is not None
        assert record.end_time is not None
        self.runs[MULTIPROCESS].append(_a_step(record.end_time - record.start_time))
        self._say(MULTIPROCESS)

    def _in_one_process(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        started = time.time()
        told = json.loads(_output(command, environment).splitlines()[-1])
        self.commands[name].append(_a_step(told["first_ended"] - started))
        self.runs[name].extend(_a_step(seconds) for seconds in told["seconds"][1:])
        self._say(name)

    def _say(self, name: str) -> None:
        say(f"  {name:<30} command {self.commands[name][-1]:6.2f} s, run {self.runs[name][-1]:6.2f} s a step")

    def _peers_environment(self, bench: Bench) -> dict[str, str]:
        """Use the platform's Java, jars and settings for small tables: the peers start as fast as they can."""
        parts = spark_conf.prepare(bench.settings)
        conf = {**spark_conf.build(bench.settings, parts), "spark.driver.memory": "1g"}
        setup = self._folder / "setup.json"
        setup.write_text(json.dumps({"lake": str(self._folder), "conf": conf}), encoding="utf-8")
        home = self._folder / "dagster"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
        return {
            **spark_launch.environment(bench.settings, parts),
            "DAGSTER_HOME": str(home),
            chain_pyspark.SETUP: str(setup),
        }


def _a_step(seconds: float) -> float:
    return round(seconds / STEPS, 4)


def _output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(command, env=dict(environment), cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(what=done.stderr[-2000:], where=" ".join(command), next_step="run the command by itself")
    return done.stdout
