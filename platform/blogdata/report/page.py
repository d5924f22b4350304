"""Renders the figures as one HTML file: no network, no server, and nothing of the data can become code in it.

Every text is escaped by the template, and the page's own content security policy lets only the script and the style
run whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blogdata.evidence.finding import Severity
from blogdata.report import texts

_STATIC = files("blogdata.report") / "static"


def render(figures: Mapping[str, Any], *, title: str) -> str:
    """Render the report, given as plain JSON values, as a whole HTML document."""
    style, script = _asset("page.css"), _asset("page.js")
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
            made_at=figures["made_at"],
            blog=figures["blog"],
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
        figure=texts.figure,
        change=texts.change,
        moment=texts.moment,
        key=texts.key,
    )
    return environment


def _asset(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
