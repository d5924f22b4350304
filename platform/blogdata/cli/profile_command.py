"""`blogdata profile`: profile what was published since the last look, and compare it with what was usual."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, is_new, say_json
from blogdata.cli.sql_command import session

if TYPE_CHECKING:
    from quality.profiles import Looked


def profile(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON")] = False,
) -> None:
    """Profile what is new in the observed datasets: shares of nulls, distributions, references; and warn of drift."""
    from blogdata.orchestration.lake_resource import LakeResource
    from quality.profiles import OBSERVED, look

    settings = existing()
    if is_new(settings):
        console.print(NOTHING_PUBLISHED)
        return
    access = LakeResource(root=str(settings.lake), landing=str(settings.landing))
    with session(settings) as spark:
        looked = [look(spark, access, contract, f"profile-{uuid.uuid4()}") for contract in OBSERVED.values()]
    if as_json:
        say_json([_as_json(one) for one in looked])
        return
    table = TextGrid()
    for name in ("dataset", "new periods", "rows", "what differs"):
        table.add_column(name, justify="right" if name in ("new periods", "rows") else "left")
    for one in looked:
        differs = [f"{drift.column} on {drift.period} ({drift.found:.2f} > {drift.limit:.2f})" for drift in one.drifts]
        differs += [f"{rows:,} rows refer to nothing in {name}" for name, rows in one.orphans.items()]
        rows = sum(each.profile.rows for each in one.found)
        table.add_row(one.dataset, f"{len(one.found):,}", f"{rows:,}", "; ".join(differs) or "-")
    console.print(table)


def _as_json(looked: Looked) -> dict[str, Any]:
    return {
        "dataset": looked.dataset,
        "periods": [asdict(one) for one in looked.found],
        "drifts": [asdict(drift) for drift in looked.drifts],
        "orphans": looked.orphans,
    }
