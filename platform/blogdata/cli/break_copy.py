"""A copy of a deployment to break: own home, landing zone, lake and Spark server; the original is not harmed."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from blogdata.patterns.ingestion.landed_links import stray
from blogdata.patterns.ingestion.readiness_marker import mark
from blogdata.planning.arrivals import Arrivals
from blogdata.services import config, spark_connect
from blogdata.services.config import Settings
from blogdata.services.postgres_settings import PostgresSettings
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from quality.contracts import LANDED
from resources.zone import zone_of

LOCAL = "local"
_OWN = ("visits", "users", "devices", "ads", "access_logs")


@dataclass(frozen=True, kw_only=True)
class BrokenCopy:
    """A copied deployment.

    Args:
        settings: Settings of the copy.
        simulated: Whether nothing had landed in the original, and a small blog was simulated instead.
    """

    settings: Settings
    simulated: bool

    def close(self) -> None:
        """Stop the Spark server that was started for the copy; the folder stays for inspection."""
        from resources import spark as spark_resources
        from resources.spark import SparkResource

        spark_resources.drop(SparkResource(home=str(self.settings.home)).settings)
        if self.settings.spark.mode == LOCAL:
            spark_connect.stop(self.settings)


def copy(original: Settings, name: str, *, seed: int) -> BrokenCopy:
    """Copy a deployment below its own home; an earlier copy of the same name is replaced.

    Files that never change (data files and landed files) are hard-linked, so that a copy needs little space. Table logs
    are copied. Links that lead out of the landing zone are left out. Every complete partition gets a flag in the copy,
    whatever convention makes it complete.

    Args:
        original: The deployment; without anything landed, a small blog is simulated in the copy.
        name: Name of the copy's folder.
        seed: Seed of the simulation.

    Returns:
        The copy.
    """
    home = original.home / "break" / name
    if home.is_dir():
        spark_connect.stop(_settings(home))
        shutil.rmtree(home)
    home.mkdir(parents=True)
    for kept in ("blogdata.toml", "secrets"):
        source = original.home / kept
        if source.is_dir():
            shutil.copytree(source, home / kept)
        elif source.is_file():
            shutil.copy2(source, home / kept)
    settings = _settings(home)
    if original.lake.is_dir():
        shutil.copytree(original.lake, settings.lake, copy_function=_link_data)
    there = [
        name
        for name in _OWN
        if (original.landing / name).is_dir() and not _stray(str(original.landing), [name], original.landing)
    ]
    # Before the files are linked: a new link changes the time of their last change.
    unflagged = _complete_without_flag(original)
    for name in there:
        shutil.copytree(
            original.landing / name,
            settings.landing / name,
            ignore=lambda folder, names: _stray(folder, names, original.landing),
            copy_function=_link,
        )
    for folder in unflagged:
        mark(settings.landing / folder, allow_empty=True)
    if not there:
        faults = FaultRates.none(duplicate=0.02, conflict=0.005, not_json=0.01, late=0.05)
        simulator.simulate(SimulationSpec(days=1, visits_per_day=600, seed=seed, faults=faults), settings.landing)
    return BrokenCopy(settings=settings, simulated=not there)


def _settings(home: Path) -> Settings:
    places = {"BLOGDATA_LANDING": str(home / "landing"), "BLOGDATA_LAKE": str(home / "lake")}
    loaded = config.load(overrides={"BLOGDATA_HOME": str(home), **places})
    # The copy uses no database: a configured address is that of the original's. Its runs are noted in files of its own.
    return replace(loaded, postgres=PostgresSettings(), dagster_storage=None, ready="flag")


def _stray(folder: str, names: list[str], landing: Path) -> list[str]:
    zone = os.path.realpath(landing)
    return [name for name in names if (path := Path(folder, name)).is_symlink() and stray(path, zone)]


def _complete_without_flag(original: Settings) -> list[Path]:
    return [
        partition.folder.relative_to(original.landing)
        for contract in LANDED.values()
        for partition in Arrivals.of(contract, zone_of(original)).ready
        if partition.flag is None
    ]


def _link_data(source: str, target: str) -> str:
    # Spark writes the pointer to the newest checkpoint in place: through a link it would change the original.
    if "_delta_log" in Path(source).parts or not source.endswith(".parquet"):
        return str(shutil.copy2(source, target))
    return _link(source, target)


def _link(source: str, target: str) -> str:
    # A link within the landing zone would lead back into the original.
    source = os.path.realpath(source)
    try:
        os.link(source, target)
    except OSError:
        return str(shutil.copy2(source, target))
    return target
