"""Rankings of sessions, campaigns and requests, from the gold tables that have them by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.report import request_rankings
from assets.report.page_views import Numbers
from assets.report.ranked_rows import ranking
from blogdata.lake.lake import Lake
from blogdata.report.elements import Ranking, RankingKind, Section
from quality.contracts.columns import UNKNOWN
from quality.contracts.sessions import PAUSE

_DAY = "event_date"
_ROWS = ""
"""Stands for the number of rows, in place of a column."""
_BYTES = "bytes"
"""Column whose sum is shown in thousands."""


@dataclass(frozen=True, kw_only=True)
class DailyKind:
    """A ranking of the rows of a gold table.

    Args:
        dataset: The table, partitioned by `event_date`.
        dimension: Column with the names; a row in which it is null is not ranked.
        sums: The columns whose sums are ranked, in the order of the ranking's columns; :data:`_ROWS` counts rows.
        kind: The ranking.
        several: Whether sessions of one page are left out.
    """

    dataset: str
    dimension: str
    sums: Sequence[str]
    kind: RankingKind
    several: bool = False


SESSIONS, CAMPAIGNS = "gold.sessions_daily", "gold.campaign_stats"


def _of_sessions(dimension: str, label: str, of: str, counts: Mapping[str, str], *, several: bool = False) -> DailyKind:
    kind = RankingKind(name=dimension, label=label, of=of, columns=["Sessions", *counts], monospaced=True)
    return DailyKind(dataset=SESSIONS, dimension=dimension, sums=(_ROWS, *counts.values()), kind=kind, several=several)


_BOUNCED, _PAGES = {"Of one page": "bounced"}, {"Page views": "pages"}
_REQUESTS = ("Requests", "kB")


def _of_requests(dimension: str, label: str, of: str, *, are_faults: bool = False) -> DailyKind:
    kind = RankingKind(
        name=f"requests_by_{dimension}",
        label=label,
        of=of,
        columns=_REQUESTS,
        monospaced=are_faults,
        better=-1 if are_faults else 0,
    )
    return DailyKind(dataset=request_rankings.DATASET, dimension=dimension, sums=("requests", _BYTES), kind=kind)


KINDS = (
    _of_sessions("entry_page", "Where sessions begin", "first page", _BOUNCED | _PAGES),
    _of_sessions("exit_page", "Where sessions end", "last page", _BOUNCED | _PAGES),
    _of_sessions("path", "Paths of several pages", "the first five pages", _PAGES, several=True),
    DailyKind(
        dataset=CAMPAIGNS,
        dimension="campaign",
        sums=("displays", "events", "displays_alone"),
        kind=RankingKind(
            name="campaign",
            label="Campaigns",
            of="campaign",
            columns=["Displays", "Page views after one", "Displays without"],
        ),
    ),
    _of_requests("request_kind", "Kinds of requests", "kind"),
    _of_requests("status", "Statuses", "status"),
    _of_requests("crawler", "Crawlers", "category"),
    _of_requests("host", "Virtual hosts", "host"),
    _of_requests("missing", "Not found, and errors", "status and path", are_faults=True),
    _of_requests("broken_link", "Links that lead nowhere", "site and path", are_faults=True),
)
SECTIONS = (
    Section(
        title="Sessions",
        rankings=("entry_page", "exit_page", "path"),
        note=f"A session is the page views of one visitor until a pause of {PAUSE}, counted on the day on which it "
        "is over. A visit, above, is what the page views name as one: it may go on after a pause.",
    ),
    Section(
        title="Campaigns",
        rankings=("campaign",),
        note="A campaign's page views are those within half an hour after one of its displays.",
    ),
    Section(
        title="All requests",
        rankings=tuple(f"requests_by_{name}" for name in ("request_kind", "status", "crawler", "host")),
        note="Every line of an access log that could be read, those too that are no page views: images, feeds, "
        "crawlers, and what was not found.",
    ),
    Section(
        title="Not found",
        rankings=("requests_by_missing", "requests_by_broken_link"),
        note="Answered with 404, 410 or 5xx: of each day the paths that were asked for most often.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class DailyRankings:
    """The rows of the gold tables, by dataset; a table that is not published has none."""

    tables: Mapping[str, pa.Table]

    @classmethod
    def read(cls, lake: Lake, since: str) -> DailyRankings:
        """Read the tables, without Spark.

        Args:
            lake: The tables' root.
            since: First day, as a partition key.
        """
        columns: dict[str, set[str]] = {}
        for each in KINDS:
            computed = {*request_rankings.NAMES, _ROWS}
            columns.setdefault(each.dataset, {_DAY}).update({each.dimension, *each.sums} - computed)
        columns[request_rankings.DATASET].update(request_rankings.COLUMNS)
        found = {dataset: lake.columns(dataset, sorted(names), since=since) for dataset, names in columns.items()}
        plain = {dataset: _plain(table) for dataset, table in found.items()}
        return cls(
            tables={**plain, request_rankings.DATASET: request_rankings.with_names(plain[request_rankings.DATASET])}
        )

    @property
    def own_hosts(self) -> frozenset[str]:
        """The blog's own hosts, as its log names them."""
        return request_rankings.own_hosts(self.tables[request_rankings.DATASET])

    def within(self, days: tuple[str, str], compared: tuple[str, str] | None) -> Iterator[Ranking]:
        """Rank a period.

        Args:
            days: First and last day, both included.
            compared: The same of the period before; None: there is none.

        Returns:
            The rankings that have rows.
        """
        for each in KINDS:
            found = self._counted(each, days)
            if found.keys() - {UNKNOWN}:
                before = None if compared is None else self._counted(each, compared)
                first = None if before is None else {name: numbers[0] for name, numbers in before.items()}
                yield ranking(each.kind, found, first)

    def counts(self) -> Iterator[tuple[str, pa.ChunkedArray, pa.ChunkedArray, Numbers]]:
        """Yield the name of each ranking that has rows and, row by row, its names, days and first number."""
        for each in KINDS:
            rows = self._rows(each)
            if rows.num_rows:
                ones = np.ones(rows.num_rows, dtype=np.int64)
                first = ones if each.sums[0] == _ROWS else rows[each.sums[0]].to_numpy()
                yield each.kind.name, rows[each.dimension], rows[_DAY], first

    def _rows(self, each: DailyKind) -> pa.Table:
        rows = self.tables[each.dataset]
        if not rows.num_rows:
            return rows
        rows = rows.filter(pc.is_valid(rows[each.dimension]))
        return rows.filter(pc.greater(rows["pages"], 1)) if each.several else rows

    def _counted(self, each: DailyKind, days: tuple[str, str]) -> dict[str, Sequence[int]]:
        rows = self._rows(each)
        if not rows.num_rows:
            return {}
        day = pc.cast(rows[_DAY], pa.string())
        rows = rows.filter(pc.and_(pc.greater_equal(day, days[0]), pc.less_equal(day, days[1])))
        sums = {f"_{number}": pc.cast(rows[name], pa.int64()) for number, name in enumerate(each.sums) if name != _ROWS}
        names = {each.dimension: pc.cast(rows[each.dimension], pa.string())}
        groups = (
            pa.Table.from_pydict({**names, **sums})
            .group_by(each.dimension)
            .aggregate([([], "count_all"), *((name, "sum") for name in sums)])
        )
        counted = [
            _in_unit(name, groups["count_all" if name == _ROWS else f"_{number}_sum"].to_pylist())
            for number, name in enumerate(each.sums)
        ]
        return dict(zip(groups[each.dimension].to_pylist(), zip(*counted, strict=True), strict=True))


def _in_unit(name: str, sums: Sequence[int]) -> Sequence[int]:
    return [round(number / 1000) for number in sums] if name == _BYTES else sums


def _plain(table: pa.Table) -> pa.Table:
    """Cast to what can be filtered and summed: texts, and whole numbers for truth values."""
    text, number = pa.large_string(), pa.int64()
    types = {
        name: text if name == _DAY or pa.types.is_string_view(table[name].type) else number
        for name in table.column_names
    }
    return table.cast(pa.schema(list(types.items())))
