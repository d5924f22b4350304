"""`blogdata lineage`: upstream and downstream datasets, and the owners to notify before a change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, say_json
from blogdata.errors import refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.patterns.observability import dataset_tracker
from blogdata.patterns.observability.dataset_tracker import Lineage
from quality.contracts import DECLARED
from quality.reported import reported_in


def lineage(
    dataset: Annotated[
        str | None,
        typer.Argument(help="One dataset, like silver.visits or landing.visits", show_default=False),
    ] = None,
    openlineage: Annotated[
        Path | None,
        typer.Option(help="Write every publication that is not there yet as OpenLineage events into this folder"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the graph as JSON")] = False,
) -> None:
    """Show which datasets the newest publications really read, and who owns them."""
    settings = existing()
    lake, landing = Lake(root=str(settings.lake)), str(settings.landing)
    events = EventLog(lake)
    reported = reported_in(settings.home, settings.landing)
    graph = dataset_tracker.track(lake, events, DECLARED, landing=landing, reported=reported)
    refuse_unknown([dataset] if dataset else [], graph.nodes, where="lineage")
    if openlineage is not None:
        written = dataset_tracker.export_openlineage(
            lake, events, DECLARED, landing=landing, folder=openlineage, reported=reported
        )
        if not as_json:
            console.print(f"{written} publications written to {openlineage}")
    shown = [dataset] if dataset else list(graph.nodes)
    if as_json:
        say_json([_as_json(graph, name) for name in shown])
        return
    if not any(node.published for node in graph.nodes.values()):
        console.print(NOTHING_PUBLISHED)
        return
    table = TextGrid()
    for title in ("dataset", "owner", "used by", "made of", "made of it", "tell before a change"):
        table.add_column(title)
    for name in shown:
        node = _as_json(graph, name)
        listed = [", ".join(node[key]) or "-" for key in ("consumers", "upstream", "downstream", "affected_teams")]
        table.add_row(name, node["owner"] or "-", *listed)
    console.print(table)


def _as_json(graph: Lineage, name: str) -> dict[str, Any]:
    node = graph.nodes[name]
    return {
        "dataset": name,
        "owner": node.owner,
        "consumers": list(node.consumers),
        "published": node.published,
        "reads": [{"dataset": edge.source, "version": edge.version} for edge in graph.edges if edge.target == name],
        "upstream": sorted(graph.upstream(name)),
        "downstream": sorted(graph.downstream(name)),
        "affected_teams": sorted(graph.affected_teams(name)),
    }
