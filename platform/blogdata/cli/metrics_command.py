"""`blogdata metrics`: the deployment's figures in Prometheus' text format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import existing, say_verbatim
from blogdata.errors import ConfigurationError
from blogdata.services import dagster_home


def metrics(
    out: Annotated[
        Path | None,
        typer.Option(help="Write them to this file, atomically, instead of printing them", show_default=False),
    ] = None,
) -> None:
    """Print the figures of every dataset as Prometheus metrics.

    With --out the file is replaced as a whole, as the textfile collector of Prometheus' node_exporter needs it.
    """
    from prometheus_client import generate_latest, write_to_textfile

    from blogdata.lake.lake import Lake
    from blogdata.operations.alerting import observed, record_of
    from blogdata.planning.metrics import registry
    from quality.contracts import EVERY

    settings = existing()
    failing = record_of(settings).failing
    channels = {channel.name: channel.name in failing for channel in settings.alerts}
    ticks = dagster_home.ticks(settings.home)
    found = registry(observed(settings), Lake(root=str(settings.lake)), list(EVERY.values()), channels, ticks)
    if out is None:
        say_verbatim(generate_latest(found).decode())
        return
    try:
        write_to_textfile(str(out), found)
    except OSError as error:
        raise ConfigurationError(
            what=f"the file cannot be written: {error.strerror}",
            where=f"--out {out}",
            next_step="name a file in an existing folder that you may write",
        ) from error
