"""The rotation of a key, as what is killed: readers have the same joins and histories, by another key."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from chaos.movers import Mover, Places, command
from lineage.deployment import Deployment
from lineage.expected_ads import Row
from lineage.tokens import OF_USERS, deliver, joined, marks
from quality.contracts.keys import VISITOR_KEY


class KeyRotation(Mover):
    """The job `rotate` of the key of the tokens."""

    name = "key_rotation"
    longest = 15_000
    appears = False

    @classmethod
    def made(cls, places: Places) -> Mover:
        made = Deployment.create(places.folder, places.spark())
        deliver(made, "2026-01-05", {f"user {n}": f"login {n}" for n in range(40)})
        deliver(made, "2026-01-06", {f"user {n}": f"login {n % 30}" for n in range(60)})
        assert made.run(for_=OF_USERS).problems == []
        return cls(home=made.settings.home)

    def change(self, dice: random.Random) -> None:
        """A rotation makes another version of the key by itself."""

    def work(self) -> None:
        command(self.home, "job", "rotate", f"key={VISITOR_KEY}")

    def wanted(self) -> Counter[Row]:
        return self.found()

    def found(self) -> Counter[Row]:
        return Counter((of, *row) for of, rows in joined(self._deployment).items() for row in rows)

    def problems(self) -> list[str]:
        made = self._deployment
        versions = {version for dataset in OF_USERS for version in marks(made, dataset)}
        mixed = [f"tokens follow from versions {versions} of the key"] if len(versions) > 1 else []
        return [*mixed, *made.problems()]

    @property
    def folder(self) -> Path:
        return self.settings.lake

    @property
    def _deployment(self) -> Deployment:
        return Deployment(settings=self.settings)
