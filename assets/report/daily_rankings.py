"""Rankings of campaigns and requests, from the gold tables that have them by day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from blogdata.lake.lake import Lake
from blogdata.report.elements import Ranking, RankingKind
from quality.contracts.columns import DIRECT, UNKNOWN
from quality.contracts.requests import CRAWLER, OTHER

CAMPAIGNS, REQUESTS = "gold.campaign_stats", "gold.requests_daily"
_DAY = "event_date"
_READ = {
    CAMPAIGNS: (_DAY, "campaign", "displays", "events", "displays_alone"),
    REQUESTS: (_DAY, "kind", "status", "method", "host", "path", "referral_host", "requests"),
}
_COUNTS = frozenset({"displays", "events", "displays_alone", "requests"})
_OF_A_SITE = 0.05
"""Share of the answered page requests from which on a virtual host is the blog's own, and not one a client made up."""


def _campaigns(rows: pa.Table) -> pa.Array:
    return rows["campaign"]


def _crawlers(rows: pa.Table) -> pa.Array:
    category = pc.replace_substring(rows["kind"], CRAWLER, "", max_replacements=1)
    named = pc.replace_substring(category, "_", " ")
    return pc.if_else(pc.starts_with(rows["kind"], CRAWLER), named, _text(None))


def _broken_links(rows: pa.Table) -> pa.Array:
    named = pc.binary_join_element_wise(rows["referral_host"], rows["path"], _text(" → "))
    linked = pc.and_(pc.not_equal(rows["path"], ""), pc.not_equal(rows["referral_host"], DIRECT))
    # A form of the blog that fails is no link.
    followed = pc.is_in(rows["method"], pa.array(["GET", "HEAD"], pa.large_string()))
    return pc.if_else(pc.and_(linked, followed), named, _text(None))


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


@dataclass(frozen=True, kw_only=True)
class DailyKind:
    """A ranking of the rows of a gold table.

    Args:
        names: Computes the names, row by row; null where a row is none of it.
    """

    dataset: str
    names: Callable[[pa.Table], pa.Array]
    sums: Sequence[str]
    kind: RankingKind


KINDS = (
    DailyKind(
        dataset=CAMPAIGNS,
        names=_campaigns,
        sums=("displays", "events", "displays_alone"),
        kind=RankingKind(
            name="campaign",
            label="Campaigns of advertisements",
            of="campaign",
            columns=("Displays", "Views after", "Alone"),
            note="Page views within half an hour after a display, and displays without any.",
        ),
    ),
    DailyKind(
        dataset=REQUESTS,
        names=_crawlers,
        sums=("requests",),
        kind=RankingKind(name="crawler", label="Crawlers", of="category", columns=("Requests",)),
    ),
    DailyKind(
        dataset=REQUESTS,
        names=_broken_links,
        sums=("requests",),
        kind=RankingKind(
            name="broken_link",
            label="Links that lead nowhere",
            of="site and path",
            columns=("Requests",),
            note="Answered with 404, 410 or 5xx: of each day the paths that were asked for most often.",
        ),
    ),
)


@dataclass(frozen=True, kw_only=True)
class DailyRankings:
    """The rows of the gold tables, by dataset; a table that is not published has none."""

    tables: Mapping[str, pa.Table]

    @classmethod
    def read(cls, lake: Lake, since: str) -> DailyRankings:
        """Read the tables from a day on, without Spark."""
        return cls(
            tables={dataset: _plain(lake.columns(dataset, names, since=since)) for dataset, names in _READ.items()}
        )

    @property
    def own_hosts(self) -> frozenset[str]:
        """The virtual hosts that are the blog's own: those that answer a good part of the requests for pages."""
        rows = self.tables[REQUESTS]
        if not rows.num_rows:
            return frozenset()
        answered = pc.and_(pc.equal(rows["kind"], "page"), pc.match_substring_regex(rows["status"], "^[23]"))
        groups = rows.filter(answered).group_by("host").aggregate([("requests", "sum")])
        requests = dict(zip(groups["host"].to_pylist(), groups["requests_sum"].to_pylist(), strict=True))
        least = _OF_A_SITE * sum(requests.values())
        return frozenset(
            host.removeprefix("www.")
            for host, count in requests.items()
            if host not in (UNKNOWN, OTHER) and count >= least
        )

    def within(self, first: str, last: str) -> Iterator[Ranking]:
        """Rank the days from the first to the last one; a ranking without rows is left out."""
        for each in KINDS:
            rows = self.tables[each.dataset]
            if rows.num_rows:
                days = rows[_DAY]
                rows = rows.filter(pc.and_(pc.greater_equal(days, first), pc.less_equal(days, last)))
                named = rows.append_column("name", each.names(rows)).filter(pc.is_valid(pc.field("name")))
                groups = named.group_by("name").aggregate([(name, "sum") for name in each.sums])
                sums = zip(*(groups[f"{name}_sum"].to_pylist() for name in each.sums), strict=True)
                counted = dict(zip(groups["name"].to_pylist(), sums, strict=True))
                if counted.keys() - {UNKNOWN}:
                    yield each.kind.ranking(counted.items())


def _plain(table: pa.Table) -> pa.Table:
    """Cast to what can be filtered and summed: texts and whole numbers."""
    types = [(name, pa.int64() if name in _COUNTS else pa.large_string()) for name in table.column_names]
    return table.cast(pa.schema(types))
