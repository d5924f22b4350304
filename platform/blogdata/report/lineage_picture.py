"""The lineage as a picture: boxes in columns by layer, and curves from each dataset to its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blogdata.patterns.observability.dataset_tracker import Lineage

WIDTH, HEIGHT = 164, 40
_BETWEEN_COLUMNS, _BETWEEN_ROWS, _TOP = 29, 12, 28
_SWEEPS = 8
"""Rounds that order the boxes of each column by their neighbours; more do not change the picture."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A dataset in the picture.

    Args:
        dataset: Name as `layer.table`.
        name: The part of it after the layer.
        owner: Who is responsible for it; None for a source outside the platform.
        published: Whether it was ever published.
        x: Left edge, in pixels.
        y: Upper edge, in pixels.
        upstream: All it is computed from, directly or indirectly.
        downstream: All that is computed from it.
    """

    dataset: str
    name: str
    owner: str | None
    published: bool
    x: int
    y: int
    upstream: Sequence[str]
    downstream: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A dataset is read by another one; `path` is an SVG path."""

    source: str
    target: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The picture.

    Args:
        width: Its width, in pixels.
        height: Its height, in pixels.
        box_width: Width of a box.
        box_height: Height of a box.
        layers: Names of the layers with their left edges.
        boxes: The datasets.
        curves: From each dataset to its readers.
    """

    width: int
    height: int
    box_width: int
    box_height: int
    layers: Sequence[tuple[str, int]]
    boxes: Sequence[Box]
    curves: Sequence[Curve]


def picture(lineage: Lineage) -> Picture:
    """Lay out a lineage; datasets that read others of their own layer stand in a column further right."""
    edges = [(edge.source, edge.target) for edge in lineage.edges if edge.source != edge.target]
    columns = _columns(lineage, edges)
    rows = _rows(columns, edges)
    tallest = max((len(column) for column in columns), default=0)
    at = {
        name: (
            index * (WIDTH + _BETWEEN_COLUMNS),
            _TOP + row * (HEIGHT + _BETWEEN_ROWS) + (tallest - len(column)) * (HEIGHT + _BETWEEN_ROWS) // 2,
        )
        for index, column in enumerate(columns)
        for row, name in enumerate(sorted(column, key=rows.__getitem__))
    }
    layers: dict[str, int] = {}
    for name, (x, _) in at.items():
        layer = name.partition(".")[0]
        layers[layer] = min(x, layers.get(layer, x))
    return Picture(
        width=max(len(columns) * (WIDTH + _BETWEEN_COLUMNS) - _BETWEEN_COLUMNS, 0),
        height=_TOP + tallest * (HEIGHT + _BETWEEN_ROWS),
        box_width=WIDTH,
        box_height=HEIGHT,
        layers=sorted(layers.items(), key=lambda one: one[1]),
        boxes=[
            Box(
                dataset=name,
                name=name.partition(".")[2],
                owner=lineage.nodes[name].owner,
                published=lineage.nodes[name].published,
                x=x,
                y=y,
                upstream=sorted(lineage.upstream(name)),
                downstream=sorted(lineage.downstream(name)),
            )
            for name, (x, y) in at.items()
        ],
        curves=[
            Curve(source=source, target=target, path=_path(at[source], at[target])) for source, target in sorted(edges)
        ],
    )


def _columns(lineage: Lineage, edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Group the datasets by layer and, within a layer, by how many of it they are computed from in a row."""
    layers = {"landing": 0, "bronze": 1, "silver": 2, "gold": 3, "serving": 4}
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            layer = name.partition(".")[0]
            depth[name] = 0
            above = [source for source, target in edges if target == name and source.partition(".")[0] == layer]
            depth[name] = max((depth_of(source) + 1 for source in above), default=0)
        return depth[name]

    grouped: dict[tuple[int, int], list[str]] = {}
    for name in lineage.nodes:
        rank = layers.get(name.partition(".")[0], len(layers))
        grouped.setdefault((rank, depth_of(name)), []).append(name)
    return [grouped[key] for key in sorted(grouped)]


def _rows(columns: Sequence[Sequence[str]], edges: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Order the boxes of each column by the mean position of their neighbours, so that few curves cross."""
    rows = {name: row - len(column) / 2 for column in columns for row, name in enumerate(column)}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = {}
            for name in column:
                near = [rows[source] for source, target in edges if target == name]
                near += [rows[target] for source, target in edges if source == name]
                wanted[name] = sum(near) / len(near) if near else rows[name]
            for row, name in enumerate(sorted(column, key=lambda one: (wanted[one], one))):
                rows[name] = row - len(column) / 2
    return rows


def _path(source: tuple[int, int], target: tuple[int, int]) -> str:
    begin, end = (source[0] + WIDTH, source[1] + HEIGHT // 2), (target[0], target[1] + HEIGHT // 2)
    bend = max((end[0] - begin[0]) // 2, _BETWEEN_COLUMNS // 2)
    return f"M{begin[0]} {begin[1]}C{begin[0] + bend} {begin[1]} {end[0] - bend} {end[1]} {end[0]} {end[1]}"
