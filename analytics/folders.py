"""Where the gold tables are, and where the team's own tables and files go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The folders of a deployment."""

    gold: Path
    own: Path


class FoldersResource(dg.ConfigurableResource["FoldersResource"]):
    """Finds the folders when a run asks for them; without `gold` and `own`, by the environment.

    Args:
        gold: Folder of the gold tables; empty: `ANALYTICS_GOLD`, or `lake/gold` in `BLOGDATA_HOME`.
        own: The team's folder; empty: `ANALYTICS_HOME`, or `analytics` in `BLOGDATA_HOME`.
    """

    gold: str = ""
    own: str = ""

    @property
    def folders(self) -> Folders:
        """The folders."""
        found = of(os.environ)
        return Folders(gold=Path(self.gold) if self.gold else found.gold, own=Path(self.own) if self.own else found.own)


def of(environ: Mapping[str, str]) -> Folders:
    """Find the folders that an environment names."""
    home = Path(environ.get("BLOGDATA_HOME", "var"))
    return Folders(
        gold=Path(environ.get("ANALYTICS_GOLD", str(home / "lake" / "gold"))),
        own=Path(environ.get("ANALYTICS_HOME", str(home / "analytics"))),
    )
