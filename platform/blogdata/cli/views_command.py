"""`blogdata views`: the lake's views as SQL for other Sparks, and for DuckDB."""

from __future__ import annotations

from blogdata.cli.output import console, existing
from blogdata.errors import ConfigurationError
from blogdata.evidence.events import EVENTS
from blogdata.lake.lake import Lake
from blogdata.patterns.data_value import lake_views
from quality.contracts import EVERY


def views() -> None:
    """Write the views for consumers, and of what is several tables, as SQL into the lake."""
    lake = Lake(root=str(existing().lake))
    if lake.table(EVENTS) is None:
        raise ConfigurationError(what="nothing is published yet", where=lake.root, next_step="run: blogdata run")
    for file in lake_views.write(lake, list(EVERY.values())):
        console.print(str(file))
