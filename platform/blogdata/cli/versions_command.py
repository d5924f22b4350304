"""`blogdata versions`: the copies of a dataset and when each was visible, for datasets that keep copies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json, styled, why_nothing
from blogdata.cli.sql_command import moment_of
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.lake.lake import Lake
from blogdata.lake.members import Member, NotBehindAPointer
from blogdata.patterns.idempotency import proxy
from blogdata.publish.writes import ByPeriod, Copy
from quality.contracts import CONTRACTS


def versions(
    dataset: Annotated[str, typer.Argument(help="A dataset that keeps its copies, like bronze.devices")],
    at: Annotated[
        str | None,
        typer.Option(help="Only what readers saw at this time: 2026-01-05 or 2026-01-05T03:00:00 (UTC)"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the copies as JSON")] = False,
) -> None:
    """Show which copy of a dataset was visible when."""
    refuse_unknown([dataset], CONTRACTS, where="versions")
    settings = existing()
    lake = Lake(root=str(settings.lake))
    moment = moment_of(at, "--at") if at else None
    try:
        found = proxy.history(lake, dataset) if moment is None else proxy.visible_at(lake, dataset, moment)
    except NotBehindAPointer as error:
        kept = [name for name, contract in CONTRACTS.items() if isinstance(contract.write, Copy | ByPeriod)]
        raise ConfigurationError(
            what=f"{dataset} is one table and keeps no copies",
            where="versions",
            next_step=f"choose: {', '.join(kept)}; any table as it was: blogdata sql --as-of",
        ) from error
    if as_json:
        say_json([_as_json(member) for member in found])
    elif found:
        _show(found)
    else:
        console.print("nothing was visible by then" if at else why_nothing(settings, lake, dataset))


def _as_json(member: Member) -> dict[str, Any]:
    return {
        "copy": member.location,
        "table_version": member.since_version,
        "visible_from": _moment(member.visible_from),
        "visible_until": _moment(member.visible_until),
        "visible": member.visible,
        "partitions": [key for key in member.partitions if key],
        "frozen": member.frozen,
        "rows": member.rows,
        "run_id": member.run_id,
        "removed_at": _moment(member.removed_at),
    }


def _show(found: Sequence[Member]) -> None:
    table = TextGrid()
    for name in ("visible from", "until", "version", "rows", "copy", "run", ""):
        table.add_column(name, justify="right" if name in ("version", "rows") else "left")
    for member in found:
        state = styled("visible", "green") if member.visible else "removed" if member.removed_at else "kept"
        table.add_row(
            _moment(member.visible_from),
            _moment(member.visible_until) or "",
            str(member.since_version),
            f"{member.rows:,}",
            member.location,
            member.run_id,
            state,
        )
    console.print(table)


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
