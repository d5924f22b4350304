"""The part about the blog: who read what, by period, each number beside that of the period before.

Every number is computed from the page views of its period alone, so that it equals a query over
`silver.visits_enriched` with the same hours. Only `new` also looks at what came before. Rankings of sessions and
campaigns are sums over the days of gold tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from assets.report.charts import charts
from assets.report.daily_rankings import SECTIONS as DAILY_SECTIONS
from assets.report.daily_rankings import DailyRankings
from assets.report.history import history
from assets.report.page_views import DAY, Counted, PageViews, key_of_hour
from assets.report.ranked_rows import ranking
from assets.report.referrers import ReferrerKind, Referrers, known
from blogdata.lake.lake import Lake
from blogdata.publish.partitions import Grain, key_of, start_of
from blogdata.report.elements import Audience, Figure, Grid, Ranking, RankingKind, ReportPeriod, Section, Unit
from quality.contracts.columns import DIRECT, UNKNOWN
from quality.contracts.sessions import PAUSE

WEEK = 7 * DAY
_DATE = len("2026-01-31")
LENGTHS = {1: WEEK, 7: 7 * DAY, 28: 28 * DAY, 90: 91 * DAY}
"""Periods in whole days, and how many hours earlier the period is that each is compared with: of the same weekdays."""
KNOWN = 28 * DAY
"""Hours of history before a period that is compared, without which nobody can be told to be new."""
_AS_FAR_AS = "as far back as this page reads"
ALL, SO_FAR = "all", "today"
_HOST, _KIND, _UTM = "referral_host", "referral_kind", "utm"
_COLUMNS = ("Views", "Visits", "Visitors")
RANKINGS = (
    RankingKind(name="page", label="Pages", of="page", columns=_COLUMNS, monospaced=True),
    RankingKind(name=_HOST, label="Other sites they came from", of="site", columns=_COLUMNS),
    RankingKind(name=_KIND, label="Kinds of sites they came from", of="kind", columns=_COLUMNS),
    RankingKind(name=_UTM, label="Campaigns of links they followed", of="source / medium / campaign", columns=_COLUMNS),
    RankingKind(name="country", label="Countries", of="country", columns=_COLUMNS),
    RankingKind(name="browser", label="Browsers", of="browser", columns=_COLUMNS),
    RankingKind(name="device_type", label="Devices", of="device", columns=_COLUMNS),
    RankingKind(name="system", label="Operating systems", of="system", columns=_COLUMNS),
)
SECTIONS = (
    Section(title="What was read, and from where", rankings=("page", _HOST)),
    Section(
        title="Who read it, and how they came",
        rankings=(_KIND, _UTM, "country", "browser", "device_type", "system"),
    ),
    *DAILY_SECTIONS,
)
NO_SITES = {name: name for name in (ReferrerKind.SPAM.value, UNKNOWN)} | {DIRECT: ReferrerKind.DIRECT.value}
"""What stands in place of a host, and how it is shown."""
NO_KINDS = (ReferrerKind.DIRECT, ReferrerKind.OWN, ReferrerKind.SPAM, ReferrerKind.UNKNOWN)
"""Kinds of what is no site that readers came from."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NOTES = (
    "A page view is a row of silver.visits_enriched: a request for a page, without repetitions. Of access logs, feeds, "
    "images and other assets, crawlers, and requests that were not answered with the page are left out; the part "
    "about the data counts them by reason.",
    "A visit is what the page views name as one. Of an access log it is the page views of one address and browser "
    f"without a pause of {PAUSE}.",
    "The blog's own hosts are those of the settings; without any, the log's virtual hosts; without these, the host "
    "that most page views after the first of a visit come from, of those with a referrer. They, no referrer and hosts "
    "on a list of referrer spam are no sites that readers came from; the shares are of all page views. The kind of a "
    "site is that of its host in a table.",
    "Days and hours are UTC. A visit or visitor on two days counts on both, and once in a period that has both days: "
    "the numbers of days do not add up to that of their period, nor do those of weeks and months. Weeks begin on "
    "Monday; the first and the last week or month of a chart count the days that the period has of it.",
    "The operating system is that of the device, which names it for desktops and Apple's devices; of other phones and "
    "tablets, those of the known makers count as Android.",
    "Visitors who asked not to be shared are counted like everybody; nobody is named on this page.",
)


def audience(lake: Lake, *, days: int, referrers: Referrers | None = None) -> Audience | None:
    """Compute the figures of the blog.

    Args:
        lake: The tables' root.
        days: How many days back from the newest page view the history goes.
        referrers: What is known of the sites that readers came from; None: the project's own table.

    Returns:
        The figures; None if no page view is published.
    """
    newest = _newest(lake)
    if newest is None:
        return None
    since = key_of(start_of(newest[:_DATE], Grain.DAY) - Grain.DAY.length * (days - 1), Grain.HOUR)
    daily = DailyRankings.read(lake, since[:_DATE])
    sites = known() if referrers is None else referrers
    views = PageViews.read(lake, since, sites if sites.own else replace(sites, own=daily.own_hosts))
    if views is None:
        return None
    spans = dict(_spans(views))
    chosen = next(name for name in ("7", "1", SO_FAR, ALL) if name in spans)
    return Audience(
        title="The blog",
        since=key_of_hour(views.first),
        until=key_of_hour(views.last),
        chosen=chosen,
        periods=[_period(views, daily, name, span) for name, span in spans.items()],
        sections=SECTIONS,
        history=history(views, daily, _apart(views)),
        notes=NOTES,
    )


def _newest(lake: Lake) -> str | None:
    return max(lake.row_counts("silver.visits_enriched", "event_hour"), default=None)


@dataclass(frozen=True, kw_only=True)
class _Span:
    """A period: its first and last hour, and those of the period it is compared with."""

    label: str
    first: int
    last: int
    compared: tuple[int, int] | None = None


def _spans(views: PageViews) -> Iterator[tuple[str, _Span]]:
    """Choose the periods.

    A period of whole days that is the whole history is left out: it is the last one, `all`.
    """
    begins = views.first // DAY * DAY
    days = views.last // DAY - views.first // DAY + 1
    # The newest day counts as a whole one when its last hour has come.
    last = views.last if views.last % DAY == DAY - 1 else views.last // DAY * DAY - 1

    def span(label: str, first: int, last: int, earlier: int) -> _Span:
        compared = None if first - earlier < begins else (first - earlier, last - earlier)
        return _Span(label=label, first=first, last=last, compared=compared)

    if last != views.last:
        yield SO_FAR, span("Newest day, so far", last + 1, views.last, WEEK)
    whole = (last + 1 - begins) // DAY
    for length, earlier in LENGTHS.items():
        if length < whole or (length == whole and last != views.last):
            label = "Last day" if length == 1 else f"{length} days"
            yield str(length), span(label, last - length * DAY + 1, last, earlier)
    yield ALL, _Span(label=f"All {days} days" if days > 1 else "All of it", first=views.first, last=views.last)


def _period(views: PageViews, daily: DailyRankings, name: str, span: _Span) -> ReportPeriod:
    before = None if span.compared is None else views.counted(*span.compared)
    known = span.compared is not None and span.compared[0] - views.first >= KNOWN
    return ReportPeriod(
        name=name,
        label=span.label,
        first=key_of_hour(span.first),
        last=key_of_hour(span.last),
        compared=None if span.compared is None else (key_of_hour(span.compared[0]), key_of_hour(span.compared[1])),
        figures=list(
            _figures(
                views.counted(span.first, span.last),
                before,
                knows_who_is_new=known,
                knows_who_is_private=views.knows_who_is_private,
            )
        ),
        charts=list(charts(views, span.first, span.last, span.compared)),
        grids=list(_grids(views, span)),
        rankings=list(_rankings(views, daily, span)),
    )


def _figures(
    now: Counted, before: Counted | None, *, knows_who_is_new: bool, knows_who_is_private: bool
) -> Iterator[Figure]:
    def figure(name: str, label: str, definition: str, *, unit: Unit = Unit.COUNT, better: int = 0) -> Figure:
        return Figure(
            name=name,
            label=label,
            value=_values(now)[name],
            before=None if before is None else _values(before)[name],
            definition=definition,
            unit=unit,
            better=better,
        )

    yield figure("views", "Page views", "Pages opened in the period.", better=1)
    yield figure("visits", "Visits", "Distinct visits with a page view in the period.", better=1)
    yield figure("visitors", "Visitors", "Distinct visitors with a page view in the period.", better=1)
    new = figure("new", "New visitors", f"Visitors without a page view before the period, {_AS_FAR_AS}.", better=1)
    returning = figure(
        "returning", "Returning", f"Visitors who had a page view before the period, {_AS_FAR_AS}.", better=1
    )
    # Where the history has just begun, nearly all visitors are new to it.
    yield from (one if knows_who_is_new else replace(one, before=None) for one in (new, returning))
    yield figure("views_per_visit", "Pages a visit", "Page views divided by visits.", unit=Unit.RATIO, better=1)
    yield figure(
        "bounce", "Bounce rate", "Share of visits with exactly one page view in the period.", unit=Unit.SHARE, better=-1
    )
    yield figure(
        "seconds",
        "Visit length",
        "Median time from the first to the last page view, of visits with several; how long the last page was read "
        "is not known.",
        unit=Unit.SECONDS,
        better=1,
    )
    if knows_who_is_private:
        yield figure("private_views", "Kept private", "Page views of visitors who asked not to be shared.")


def _values(counted: Counted) -> Mapping[str, float | None]:
    return {
        "views": counted.views,
        "visits": counted.visits,
        "visitors": counted.visitors,
        "new": counted.new,
        "returning": counted.visitors - counted.new,
        "views_per_visit": counted.views / counted.visits if counted.visits else None,
        "bounce": counted.bounced / counted.visits if counted.visits else None,
        "seconds": counted.seconds,
        "private_views": counted.private_views,
    }


def _grids(views: PageViews, span: _Span) -> Iterator[Grid]:
    """Average the hours of the week; a day alone has its chart by hour."""
    week = dict(zip(WEEKDAYS, views.by_weekday(span.first, span.last), strict=True))
    days = {day: hours for day, hours in week.items() if any(hour is not None for hour in hours)}
    if len(days) > 1:
        yield Grid(
            label="Page views by hour of the week, on average",
            rows=list(days),
            columns=[f"{hour:02}" for hour in range(DAY)],
            values=list(days.values()),
        )


def _apart(views: PageViews) -> Mapping[str, Mapping[str, str]]:
    """Return, by ranking, the names that it does not rank, and what each is shown as."""
    return {
        _HOST: {**NO_SITES, **{host: f"{host}, this blog" for host in views.own_hosts}},
        _KIND: {kind.value: kind.value for kind in NO_KINDS},
        _UTM: {UNKNOWN: "no campaign"},
    }


def _rankings(views: PageViews, daily: DailyRankings, span: _Span) -> Iterator[Ranking]:
    apart = _apart(views)
    for kind in RANKINGS:
        counted = {name: numbers for name, *numbers in views.by(kind.name, span.first, span.last)}
        if counted.keys() <= ({UNKNOWN} | apart[_KIND].keys() if kind.name == _KIND else {UNKNOWN}):
            continue
        before = None if span.compared is None else views.views_by(kind.name, *span.compared)
        yield ranking(kind, counted, before, apart=apart.get(kind.name, {}))
    # A day that has just begun cannot be held against a whole one.
    whole = span.compared is not None and span.last % DAY == DAY - 1
    yield from daily.within(
        _days(span.first, span.last), _days(*span.compared) if whole and span.compared is not None else None
    )


def _days(first: int, last: int) -> tuple[str, str]:
    return key_of_hour(first)[:_DATE], key_of_hour(last)[:_DATE]
