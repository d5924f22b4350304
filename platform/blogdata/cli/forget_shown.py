"""What `blogdata forget` shows of erasures: where given values still are, and the certificates."""

from __future__ import annotations

from blogdata.cli.output import TextGrid, console
from blogdata.erasure import certificates as kept
from blogdata.erasure.clearing import look
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers
from quality.contracts import EVERY


def search(settings: Settings, given: Identifiers) -> bool:
    """Search all files of a deployment, show where values are, and what cannot be read; never a value.

    Returns:
        Whether any was found.

    Raises:
        ConfigurationError: No value is given.
    """
    if not given.values():
        raise ConfigurationError(
            what="no value to search for is given",
            where="blogdata forget --search",
            next_step="name values: a user id, --login, --email, --visit, --address or --file",
        )
    found = look(settings, EVERY.values(), given.values())
    table = TextGrid()
    for name in ("place", "file", "found in"):
        table.add_column(name)
    table.add_column("times", justify="right")
    for trace in found.traces:
        table.add_row(trace.place, trace.path, trace.how, f"{trace.count:,}")
    if found.traces:
        console.print(table)
    for one in found.unsearched:
        console.print(f"not searched: {one.path}: {one.why}")
    files = len({trace.path for trace in found.traces})
    console.print(f"{found.files:,} files with {found.bytes:,} bytes were searched; {files:,} of them have a value")
    return bool(found.traces)


def certificates(settings: Settings) -> None:
    """List the certificates of a deployment, a line for each place."""
    lines = kept.certificates(Lake(root=str(settings.lake)))
    if not lines:
        console.print("nobody was forgotten")
        return
    table = TextGrid()
    for name in ("erasure", "by code", "place"):
        table.add_column(name)
    for name in ("files", "rows", "still found in"):
        table.add_column(name, justify="right")
    table.add_column("what else")
    for line in lines:
        gone = [f"{what} is gone: {why}" for what, why in line.gone.items()]
        counts = (f"{count:,}" for count in (line.files, line.rows, line.files_with_values))
        more = "; ".join(filter(None, [*gone, line.note, line.left_because]))
        table.add_row(line.certificate, line.code_version, line.place, *counts, more)
    console.print(table)
