"""The shared parts of a campaign: a simulated world, the result of an undisturbed run, and the Spark servers."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos import world as worlds
from chaos.draws import WRITERS
from chaos.servers import Servers
from chaos.world import CHECKPOINT_INTERVAL, World
from lineage.deployment import Deployment
from lineage.expected_ads import Row
from lineage.worker import Job, Worker


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The environment of all rounds.

    Args:
        folder: The campaign's folder.
        fixed: Settings that all deployments share, as TOML.
        servers: The Spark servers.
        world: The landing zones.
        first: A deployment that has published the first landing zone.
        order: Writers in the order in which they publish.
        contents: Every row published by an undisturbed run.
    """

    folder: Path
    fixed: str
    servers: Servers
    world: World
    first: Deployment
    order: Sequence[str]
    contents: Mapping[str, Counter[Row]]

    @classmethod
    def create(
        cls, folder: Path, seed: int, *, heap: str = "1g", archive: Path | None = None, spares: bool = False
    ) -> Bench:
        """Prepare a campaign: simulate, start a server, run twice undisturbed, and compare with the plain rules.

        Args:
            folder: A new one.
            seed: Of the simulated world.
            heap: Memory of a Spark server, which keeps some 4 MB of every killed run until it ends.
            archive: See :class:`Servers`.
            spares: See :class:`Servers`.
        """
        folder.mkdir(parents=True)
        fixed = (
            f'[spark]\nheap = "{heap}"\nstart_seconds = 240\n[spark.conf]\n'
            f'"spark.sql.warehouse.dir" = {json.dumps(str(folder / "warehouse"))}\n'
            '"spark.driver.defaultJavaOptions" = ""\n'
            f'"spark.databricks.delta.properties.defaults.checkpointInterval" = "{CHECKPOINT_INTERVAL}"\n'
            # With few rows, interpreting code is faster than compiling it.
            '"spark.sql.codegen.wholeStage" = "false"\n'
        )
        world = World.create(folder / "world", seed)
        servers = Servers(folder / "servers", fixed, archive=archive, spares=spares)
        try:
            whole = world.deployment(folder / "whole", fixed)
            world.arrive(whole)
            servers.serve(whole, doomed=False)
            order = undisturbed(whole, folder / "runs" / "whole")
            first = world.deployment(folder / "published", fixed)
            # This run loads all classes that the doomed servers will need.
            servers.serve(first, doomed=True)
            undisturbed(first, folder / "runs" / "first")
            never = sorted(set(WRITERS) - set(order))
            assert not never, f"nothing lands in this world that {', '.join(never)} would publish"
            for dataset, rule in world.rules.items():
                found = worlds.difference(worlds.rows(whole, dataset, rule.columns), rule.rows)
                assert found.none, f"an undisturbed run of world {seed} and the rules disagree on {dataset}: {found}"
            servers.trained()
        except BaseException:
            servers.stop()
            raise
        contents = worlds.everything(whole)
        return cls(
            folder=folder, fixed=fixed, servers=servers, world=world, first=first, order=order, contents=contents
        )

    def deployment(self, home: Path, *, empty: bool, doomed: bool) -> Deployment:
        """Make the deployment of a round, in which everything has landed.

        Args:
            home: Its home, a new folder.
            empty: Whether nothing is published yet; otherwise the first landing zone is published.
            doomed: Whether its server will be killed.
        """
        made = self.world.deployment(home, self.fixed)
        if not empty:
            shutil.copytree(self.first.settings.lake, made.settings.lake)
        self.world.arrive(made)
        self.servers.serve(made, doomed=doomed)
        return made


def undisturbed(deployment: Deployment, folder: Path) -> list[str]:
    """Run everything undisturbed; return the datasets in the order of their first publication."""
    run = Worker(Job(home=str(deployment.settings.home), folder=str(folder)))
    assert run.problems() == []
    return list(dict.fromkeys(run.outcome()["order"]))
