"""The part about the blog: who read what, by period, each figure beside that of the period before.

Every number is computed from the page views of its period alone, so that it equals a query over
`silver.visits_enriched` with the same hours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from assets.referrers import ReferrerKind
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.table.lake import Lake
from blogdata.watch.counted_views import DATASET, DAY, PageViews, key_of_hour
from blogdata.watch.report_page import Audience, Chart, Figure, Ranking, ReportPeriod, ranking
from quality.contracts.columns import DIRECT, UNKNOWN
from quality.contracts.sessions import PAUSE

WEEK = 7 * DAY
_DATE = len("2026-01-31")
LENGTHS = {1: WEEK, 7: 7 * DAY, 28: 28 * DAY, 90: 91 * DAY}
"""Periods in whole days, each with the hours back to the period that it is compared with, of the same weekdays."""
ALL, SO_FAR = "all", "today"
_SECONDS = (
    "Median time from the first to the last page view, of visits with several; the time on the last page is not known."
)
_HOST, _KIND, _UTM = "referral_host", "referral_kind", "utm"
RANKINGS = (
    ("page", "Pages", "page"),
    (_HOST, "Other sites they came from", "site"),
    (_KIND, "Kinds of sites they came from", "kind"),
    (_UTM, "Campaigns of links they followed", "source / medium / campaign"),
    ("country", "Countries", "country"),
    ("browser", "Browsers", "browser"),
    ("device_type", "Devices", "device"),
)
"""Columns of page views by which they are ranked, with title and kind of a row."""
NO_SITES = {UNKNOWN: UNKNOWN, DIRECT: ReferrerKind.DIRECT.value}
"""Values in place of a host, with their labels."""
NO_KINDS = (ReferrerKind.DIRECT, ReferrerKind.OWN, ReferrerKind.UNKNOWN)
"""Kinds of referrers that are no other site."""
NOTES = (
    "A page view is a row of silver.visits_enriched: a request for a page, without repetitions. Of access logs, feeds, "
    "images and other assets, crawlers, and requests that were not answered with the page are left out; the part "
    "about the data counts them by reason.",
    "A visit is what the page views name as one. Of an access log it is the page views of one address and browser "
    f"without a pause of {PAUSE}.",
    "The blog's own hosts are those of the settings; without any, the host that most page views after "
    "the first of a visit come from, of those with a referrer. They and no referrer are no sites that readers came "
    "from; the shares are of all page views. The kind of a site is that of its host in a table.",
    "Days and hours are UTC. A visit or visitor on two days counts on both, and once in a period that has both days: "
    "the numbers of days do not add up to that of their period.",
    "Nobody is named on this page.",
)


def audience(lake: Lake, *, days: int, own_hosts: Collection[str] = ()) -> Audience | None:
    """Compute the figures of the blog; None if no page view is published."""
    newest = max(lake.row_counts(DATASET, "event_hour"), default=None)
    if newest is None:
        return None
    since = key_of(start_of(newest[:_DATE], Grain.DAY) - Grain.DAY.length * (days - 1), Grain.HOUR)
    views = PageViews.read(lake, since, own_hosts)
    if views is None:
        return None
    periods = {period.name: period for period in _periods(views)}
    return Audience(
        since=key_of_hour(views.first),
        until=key_of_hour(views.last),
        chosen=next(name for name in ("7", "1", SO_FAR, ALL) if name in periods),
        periods=list(periods.values()),
        notes=NOTES,
    )


def _periods(views: PageViews) -> Iterator[ReportPeriod]:
    """Compute the periods; one of whole days that equals the whole history, `all`, is left out."""
    begins = views.first // DAY * DAY
    days = views.last // DAY - views.first // DAY + 1
    # The newest day counts as a whole one when its last hour has come.
    last = views.last if views.last % DAY == DAY - 1 else views.last // DAY * DAY - 1

    def period(name: str, label: str, first: int, last: int, earlier: int | None = None) -> ReportPeriod:
        is_compared = earlier is not None and first - earlier >= begins
        before = (first - (earlier or 0), last - (earlier or 0)) if is_compared else None
        return ReportPeriod(
            name=name,
            label=label,
            first=key_of_hour(first),
            last=key_of_hour(last),
            compared=None if before is None else (key_of_hour(before[0]), key_of_hour(before[1])),
            figures=list(_figures(views.counted(first, last), views.counted(*before) if before else {})),
            chart=_chart(views, first, last),
            rankings=list(_rankings(views, first, last)),
        )

    if last != views.last:
        yield period(SO_FAR, "Newest day, so far", last + 1, views.last, WEEK)
    whole = (last + 1 - begins) // DAY
    for length, earlier in LENGTHS.items():
        if length < whole or (length == whole and last != views.last):
            label = "Last day" if length == 1 else f"{length} days"
            yield period(str(length), label, last - length * DAY + 1, last, earlier)
    yield period(ALL, f"All {days} days" if days > 1 else "All of it", views.first, views.last)


def _figures(now: Mapping[str, float | None], before: Mapping[str, float | None]) -> Iterator[Figure]:
    for name, label, definition, unit in (
        ("views", "Page views", "Pages opened in the period.", "count"),
        ("visits", "Visits", "Distinct visits with a page view in the period.", "count"),
        ("visitors", "Visitors", "Distinct visitors with a page view in the period.", "count"),
        ("views_per_visit", "Pages a visit", "Page views divided by visits.", "ratio"),
        ("bounce", "Bounce rate", "Share of visits with exactly one page view in the period.", "share"),
        ("seconds", "Visit length", _SECONDS, "seconds"),
    ):
        yield Figure(name=name, label=label, value=now[name], before=before.get(name), definition=definition, unit=unit)


def _chart(views: PageViews, first: int, last: int) -> Chart:
    """Count the days of a period; of a single day, its hours."""
    name, length = ("hours", 1) if first // DAY == last // DAY else ("days", DAY)
    first = first // length * length
    lines = views.series(first, last, length)
    keys = [key_of_hour(hour) for hour in range(first, last + 1, length)]
    return Chart(name=name, keys=keys if name == "hours" else [key[:_DATE] for key in keys], lines=lines)


def _rankings(views: PageViews, first: int, last: int) -> Iterator[Ranking]:
    apart = {
        _HOST: {**NO_SITES, **{host: f"{host}, this blog" for host in views.own_hosts}},
        _KIND: {kind.value: kind.value for kind in NO_KINDS},
        _UTM: {UNKNOWN: "no campaign"},
    }
    for name, label, of in RANKINGS:
        counted = dict(views.by(name, first, last))
        # A ranking without known values is left out, as are the kinds of sites if nobody came from one.
        if not counted.keys() <= {UNKNOWN, *(apart[_KIND] if name == _KIND else ())}:
            yield ranking(name, label, of, counted.items(), apart.get(name, {}))
