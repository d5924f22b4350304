"""Renders the figures as one HTML file: no network, no server, and nothing of the data can become code in it.

Every text is escaped by the template, the figures are embedded as JSON that no parser takes for markup, and the page's
own content security policy lets only the script and the style run whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blogdata.evidence.finding import Severity
from blogdata.report import texts

_STATIC = files("blogdata.report") / "static"
COUNTED = frozenset({"views", "visits", "visitors", "new", "returning", "views_per_visit", "bounce", "private_views"})
"""The figures that the page's script counts of any range of days."""


def render(figures: Mapping[str, Any], *, title: str) -> str:
    """Render the page.

    Args:
        figures: The report as plain JSON values.
        title: Title of the page.

    Returns:
        The whole HTML document.
    """
    style, script = _asset("uPlot.min.css", "page.css"), _asset("uPlot.iife.min.js", "page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            policy=policy,
            # Text of the project itself; between these two tags nothing is unescaped by a browser.
            style=Markup(style),
            script=Markup(script),
            licence=_asset("uPlot.LICENSE.txt"),
            figures=figures,
            blog=figures["blog"],
            frame=None if figures["blog"] is None else frame(figures["blog"]),
            data=figures["data"],
            critical=sum(one["severity"] == Severity.CRITICAL.value for one in figures["data"]["findings"]),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("blogdata.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=texts.number,
        share=texts.share,
        duration=texts.duration,
        figure=texts.figure,
        change=texts.change,
        moment=texts.moment,
        key=texts.key,
        shade=texts.shade,
        spark=texts.spark,
        segments=segments,
    )
    return environment


def frame(blog: Mapping[str, Any]) -> dict[str, Any]:
    """Return a period without numbers, which the page's script fills with those of the range that a reader chooses.

    It has the figures and columns that can be counted from the history.
    """
    whole = blog["periods"][-1]
    empty = {"value": None, "before": None}
    history = blog["history"]
    return {
        **whole,
        "name": "range",
        "compared": [whole["first"], whole["last"]],
        "figures": [{**one, **empty} for one in whole["figures"] if one["name"] in COUNTED],
        "charts": [{"name": f"{name}s", "label": f"By {name}"} for name in ("day", "week", "month", "hour")],
        "grids": [{**one, "values": [[None] * len(one["columns"])] * len(one["rows"])} for one in whole["grids"]],
        "rankings": [
            {**one, "columns": one["columns"][:1], "rows": [], "apart": [], "others": 0}
            for one in whole["rankings"]
            if one["name"] in history["rankings"]
        ],
    }


def segments(dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cut the rows in of a dataset into rows out and each reason, as shares of a bar 100 wide."""
    parts = [("rows out", max(dataset["rows_out"], 0)), *dataset["reasons"].items()]
    # What a dataset holds beyond its rows in, such as rows it keeps, has a negative count and no place in the bar.
    total = sum(rows for _, rows in parts if rows > 0)
    return list(_placed(parts, total)) if total else []


def _placed(parts: Sequence[tuple[str, int]], total: int) -> Iterator[dict[str, Any]]:
    begins = 0.0
    for index, (name, rows) in enumerate(parts):
        if rows > 0:
            width = rows / total * 100
            yield {"name": name, "rows": rows, "x": round(begins, 3), "width": round(width, 3), "index": index}
            begins += width


def _asset(*names: str) -> str:
    return "\n".join((_STATIC / name).read_text(encoding="utf-8").strip() for name in names)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
