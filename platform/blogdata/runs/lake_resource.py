"""The lake, and the deployment with its settings, as Dagster resources; run configuration holds no secret."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import cast

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from dagster_deltalake import DeltaTableResource, LocalConfig

from blogdata.landing.readiness_marker import Convention, LandingZone
from blogdata.ledger.events import EventLog
from blogdata.operate import config
from blogdata.operate.config import Settings
from blogdata.table import arrow
from blogdata.table.lake import Lake
from blogdata.table.store import require_whole


class DeploymentResource(dg.ConfigurableResource["DeploymentResource"]):
    """The deployment that a step or a sensor works for."""

    home: str

    def settings(self) -> Settings:
        """Read the settings as they are now, so that a change of them needs no restart."""
        return config.load(overrides={"BLOGDATA_HOME": self.home})


class LakeResource(dg.ConfigurableResource["LakeResource"]):
    """The tables' root, the landing zone and the event log.

    Without `checkpoints`, those of the streams lie beside the landing zone.
    """

    root: str
    landing: str
    ready: str = "flag"
    checkpoints: str = ""

    @cached_property
    def lake(self) -> Lake:
        return Lake(root=self.root)

    @cached_property
    def events(self) -> EventLog:
        return EventLog(self.lake)

    @property
    def landing_path(self) -> Path:
        return Path(self.landing)

    @property
    def landing_zone(self) -> LandingZone:
        return LandingZone(folder=self.landing_path, convention=cast(Convention, self.ready))

    @property
    def checkpoints_path(self) -> Path:
        return Path(self.checkpoints) if self.checkpoints else self.landing_path.parent / "checkpoints"

    def batches(self, dataset: str, version: int, column: str, key: str) -> Iterator[pa.RecordBatch]:
        """Read one partition of a dataset without a JVM, batch by batch."""
        table = DeltaTableResource(url=self.lake.path(dataset), storage_options=LocalConfig(), version=version).load()
        require_whole(table, dataset, f'"{column}" = {arrow.text(key)}')
        yield from table.to_pyarrow_dataset().to_batches(filter=pc.field(column) == key)
