"""Page views of a fictional blog, written without Spark, and their counts in plain Python."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from statistics import median
from typing import Any

import pyarrow as pa

import published
from blogdata.table.lake import Lake

START = datetime(2026, 1, 5, tzinfo=timezone.utc)
PAGES = tuple(f"/2026/post-{number}" for number in range(40))
HOSTS = ("direct", "news.example", "duckduckgo.com")
OWN = "blog.example.org"
"""The blog itself: where most page views after the first of a visit come from."""
COUNTRIES = ("DE", "JP", None)
UTM = ("newsletter / email / spring", "mastodon / - / -", None, None)
BROWSERS = ("Firefox", "Chrome", "Safari", None)
DEVICES = ("Windows", "iPhone", "", "Pixel 8", "Fairphone")
COLUMNS = dict(
    pair.split("=")
    for pair in "event_hour=hour event_time=time visit_id=visit user_id=visitor page=page referral_host=host utm=utm "
    "country=country browser=browser device_type=device".split()
)
"""Columns of silver.visits_enriched, and the fields of :class:`View` that they have."""
SCHEMA = pa.schema(
    [(name, pa.timestamp("us", tz="UTC") if of == "time" else pa.string()) for name, of in COLUMNS.items()]
)


@dataclass(frozen=True, kw_only=True)
class View:
    time: datetime
    visit: str
    visitor: str
    page: str
    host: str = "direct"
    country: str | None = "DE"
    utm: str | None = None
    browser: str | None = "Firefox"
    device: str | None = "Windows"

    @cached_property
    def hour(self) -> str:
        return f"{self.time:%Y-%m-%dT%H}"

    @property
    def kind(self) -> str:
        return {OWN: "this blog", "direct": "no referrer", "duckduckgo.com": "search"}.get(self.host, "other sites")


def random_views(hours: int, *, seed: int) -> list[View]:
    """Draw page views of some hours since :data:`START`: quiet hours, visits across midnight, visitors who return."""
    draw = random.Random(seed)
    ends = (START, START + timedelta(hours=hours, seconds=-1))
    views = [View(time=time, visit=f"visit-at-{time}", visitor="visitor-0", page="/") for time in ends]
    for visit in range(hours // 3):
        begins = START + timedelta(seconds=draw.randrange(hours * 3600))
        visitor = f"visitor-{draw.randrange(60)}"
        for step in range(draw.choice((1, 1, 2, 3, 8))):
            time = begins + timedelta(seconds=step * draw.randrange(1, 900))
            if time < START + timedelta(hours=hours):
                view = View(
                    time=time,
                    visit=f"visit-{visit}",
                    visitor=visitor,
                    page=draw.choice(PAGES[: 1 + draw.randrange(len(PAGES))]),
                    host=draw.choice(HOSTS) if step == 0 or draw.random() < 0.2 else OWN,
                    utm=UTM[visit % len(UTM)] if step == 0 else None,
                    country=draw.choice(COUNTRIES),
                    browser=draw.choice(BROWSERS),
                    device=draw.choice(DEVICES),
                )
                views.append(view)
    return views


def write(lake: Lake, views: Sequence[View]) -> None:
    """Publish page views as silver.visits_enriched."""
    content = pa.table({name: [getattr(view, of) for view in views] for name, of in COLUMNS.items()}, schema=SCHEMA)
    hours = Counter(view.hour for view in views)
    published.publish(lake, "silver.visits_enriched", "event_hour", hours, content=content)


def counted(views: Sequence[View], first: str, last: str) -> dict[str, Any]:
    """Count the page views from the first to the last hour in plain Python."""
    chosen = [view for view in views if first <= view.hour <= last]
    times: dict[str, list[datetime]] = {}
    for view in chosen:
        times.setdefault(view.visit, []).append(view.time)
    lengths = [(max(visit) - min(visit)).total_seconds() for visit in times.values() if len(visit) > 1]
    visitors = {view.visitor for view in chosen}
    return {
        "views": len(chosen),
        "visits": len(times),
        "visitors": len(visitors),
        "views_per_visit": len(chosen) / len(times) if times else None,
        "bounce": sum(len(visit) == 1 for visit in times.values()) / len(times) if times else None,
        "seconds": median(lengths) if lengths else None,
        **{name: _by(chosen, of) for name, of in [*COLUMNS.items()][4:]},
        "referral_kind": _by(chosen, "kind"),
    }


def _by(views: Sequence[View], dimension: str) -> dict[str, list[int]]:
    groups: dict[str, list[View]] = {}
    for view in views:
        groups.setdefault(getattr(view, dimension) or "unknown", []).append(view)
    return {
        name: [len(group), len({view.visit for view in group}), len({view.visitor for view in group})]
        for name, group in groups.items()
    }
