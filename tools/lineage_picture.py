"""The lineage as a Mermaid picture, drawn from the definitions."""

from __future__ import annotations

import dagster as dg

LAYERS = ("landing", "bronze", "silver", "gold", "serving")
"""From left to right; groups that are not listed only observe the datasets and are not part of the flow."""


def render(definitions: dg.Definitions) -> str:
    """Draw the assets by layer, with an arrow from each to its downstream assets."""
    graph = definitions.resolve_asset_graph()
    nodes = {key: graph.get(key) for key in sorted(graph.get_all_asset_keys())}
    lines = ["```mermaid", "flowchart LR"]
    for layer in LAYERS:
        lines.append(f"  subgraph {layer}")
        for key, node in nodes.items():
            if node.group_name == layer:
                label = ("/" if layer == "landing" else ".").join(key.path)
                shape = f"[/{label}/]" if node.is_external else f"[{label}]"
                lines.append(f"    {_name(key)}{shape}")
        lines.append("  end")
    for key, node in nodes.items():
        below = [_name(child) for child in sorted(node.child_keys) if nodes[child].group_name in LAYERS]
        if below:
            lines.append(f"  {_name(key)} --> {' & '.join(below)}")
    return "\n".join([*lines, "```"])


def _name(key: dg.AssetKey) -> str:
    return "_".join(key.path)
