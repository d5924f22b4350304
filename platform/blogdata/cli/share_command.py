"""`blogdata share`: a dataset's files by name, for readers that know no Delta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, not_published, say_json
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.lake import shares
from blogdata.lake.lake import Lake
from blogdata.lake.shares import Share
from blogdata.patterns.storage import manifest
from blogdata.services import files
from quality.contracts import EVERY


def share(
    dataset: Annotated[str | None, typer.Argument(help="A dataset without persons; none: list what is shared")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="End the share; its old files may be deleted")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Share the newest version of a dataset with readers that know no Delta, by a manifest of its files.

    The files are kept until the share is withdrawn, or moved to a newer version by the next call.
    """
    lake = Lake(root=str(existing().lake))
    if dataset is None:
        if withdraw:
            raise ConfigurationError(
                what="no dataset is named", where="share --withdraw", next_step="see what is shared: blogdata share"
            )
        _show(lake, _shared(lake), as_json=as_json, nothing="nothing is shared")
        return
    refuse_unknown([dataset], EVERY, where="share")
    if lake.version(dataset) is None:
        raise not_published(lake, dataset)
    with files.locked(shares.home(lake) / f".{dataset}.lock"):
        found = manifest.withdraw(lake, dataset)[-1:] if withdraw else [manifest.share(lake, EVERY[dataset])]
    _show(lake, found, as_json=as_json, nothing=f"{dataset} is not shared")
    if withdraw and found and not as_json:
        console.print("withdrawn: the manifest is gone, and its files are no longer kept")


def _shared(lake: Lake) -> list[Share]:
    return [found for name in EVERY if (found := shares.current(lake, name)) is not None]


def _show(lake: Lake, found: Sequence[Share], *, as_json: bool, nothing: str) -> None:
    if as_json:
        say_json([_as_json(lake, one) for one in found])
        return
    if not found:
        console.print(nothing)
        return
    table = TextGrid()
    for name in ("dataset", "version", "since", "files", "rows", "manifest"):
        table.add_column(name, justify="right" if name in ("version", "files", "rows") else "left")
    for one in found:
        since = f"{one.since:%Y-%m-%d %H:%M:%S}"
        where = str(manifest.location(lake, one.dataset))
        table.add_row(one.dataset, str(one.version), since, f"{one.files:,}", f"{one.rows:,}", where)
    console.print(table)


def _as_json(lake: Lake, one: Share) -> dict[str, Any]:
    return {**one.as_json(), "location": str(manifest.location(lake, one.dataset))}
