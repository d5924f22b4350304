"""A home that was copied with the times of its files is as up to date as the one it was copied from."""

from __future__ import annotations

import shutil
from pathlib import Path

from blogdata.evidence.events import EVENTS
from blogdata.services import config
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours

__all__ = ("deploy",)


def test_nothing_of_a_copied_home_is_computed_again(deploy: Deploy, tmp_path: Path) -> None:
    home = tmp_path / "moved"
    shutil.copytree(deploy.published("original", three_hours).settings.home, home)
    made = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))
    try:
        versions = {name: version for name, version in made.versions().items() if name != EVENTS}
        assert made.planner.all_stale() == {}
        assert (made.run().problems, made.run().runs) == ([], 0)
        assert {name: version for name, version in made.versions().items() if name != EVENTS} == versions
    finally:
        made.close()
