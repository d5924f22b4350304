"""What the report shows of all requests: the names of the rankings that count them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from quality.contracts.columns import DIRECT, UNKNOWN
from quality.contracts.requests import CRAWLER, OTHER

DATASET = "gold.requests_daily"
COLUMNS = ("kind", "status", "method", "host", "path", "referral_host", "requests", "bytes")
_SHOWN = {
    "ai_crawler": "AI crawlers",
    "ai_assistant": "AI assistants",
    "search": "search engines",
    "seo": "SEO tools",
    "feed_reader": "feed readers",
    "tool": "tools",
    OTHER: "other crawlers",
}
"""How the categories of crawlers are shown."""
_OF_A_SITE = 0.05
"""Share of the answered page requests from which on a virtual host is the blog's own, and not one a client made up."""


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _kinds(rows: pa.Table) -> pa.Array:
    kinds = rows["kind"]
    return pc.if_else(pc.starts_with(kinds, CRAWLER), _text("crawlers"), kinds)


def _crawlers(rows: pa.Table) -> pa.Array:
    kinds = rows["kind"]
    category = pc.replace_substring(kinds, CRAWLER, "", max_replacements=1)
    named = pa.chunked_array([[_SHOWN.get(name, name) for name in category.to_pylist()]], pa.large_string())
    is_one = pc.or_(pc.starts_with(kinds, CRAWLER), pc.equal(kinds, "monitoring"))
    return pc.if_else(is_one, named, _text(None))


def _missing(rows: pa.Table) -> pa.Array:
    named = pc.binary_join_element_wise(rows["status"], rows["path"], _text(" "))
    return pc.if_else(pc.not_equal(rows["path"], ""), named, _text(None))


def _broken_links(rows: pa.Table) -> pa.Array:
    named = pc.binary_join_element_wise(rows["referral_host"], rows["path"], _text(" → "))
    linked = pc.and_(pc.not_equal(rows["path"], ""), pc.not_equal(rows["referral_host"], DIRECT))
    # A form of the blog that fails is no link.
    followed = pc.is_in(rows["method"], pa.array(["GET", "HEAD"], pa.large_string()))
    return pc.if_else(pc.and_(linked, followed), named, _text(None))


NAMES: Mapping[str, Callable[[pa.Table], pa.Array]] = {
    "request_kind": _kinds,
    "crawler": _crawlers,
    "missing": _missing,
    "broken_link": _broken_links,
}
"""Dimension to what computes its names, row by row; null where a row is none of it."""


def with_names(rows: pa.Table) -> pa.Table:
    """Add the dimensions of :data:`NAMES`."""
    for name, compute in NAMES.items() if rows.num_rows else ():
        rows = rows.append_column(name, compute(rows))
    return rows


def own_hosts(rows: pa.Table) -> frozenset[str]:
    """Find the virtual hosts that are the blog's own: those that answer a good part of the requests for pages."""
    if not rows.num_rows:
        return frozenset()
    answered = pc.and_(pc.equal(rows["kind"], "page"), pc.match_substring_regex(rows["status"], "^[23]"))
    groups = rows.filter(answered).group_by("host").aggregate([("requests", "sum")])
    requests = dict(zip(groups["host"].to_pylist(), groups["requests_sum"].to_pylist(), strict=True))
    total = sum(requests.values())
    return frozenset(
        host.removeprefix("www.")
        for host, count in requests.items()
        if host not in (UNKNOWN, OTHER) and count >= _OF_A_SITE * total
    )
