"""`blogdata audience`: the visitors of any hours from stored sketches; no page view is read, and no Spark starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, not_published, say_json
from blogdata.cli.run_command import moment, require_span
from blogdata.errors import ConfigurationError
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.publish.partitions import Grain, between, following, key_of
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, AUDIENCE_HOURLY, CAMPAIGN_AUDIENCE_HOURLY, LG_K

if TYPE_CHECKING:
    from blogdata.lake.commit import Entry
    from blogdata.patterns.data_value.sketches import Estimate

DATASET = AUDIENCE_HOURLY.dataset
PERIODS = {"hour": len("2026-01-05T03"), "day": len("2026-01-05")}
"""Period to the length of its key, which is the beginning of the hour's."""
CAMPAIGN = "campaign"
"""Dimension with a dataset of its own."""
DIMENSIONS = (*AUDIENCE_DIMENSIONS[1:], CAMPAIGN)
GROUPS = (*PERIODS, *DIMENSIONS)


def audience(
    from_: Annotated[str, typer.Option("--from", help="First hour or day, 2026-01-05 or 2026-01-05T03 (UTC)")],
    to: Annotated[str, typer.Option("--to", help="End of the span, not included")],
    page: Annotated[list[str] | None, typer.Option(help="Only visitors of this page; several: of any of them")] = None,
    referral: Annotated[list[str] | None, typer.Option(help="Only visitors who came from this host")] = None,
    device: Annotated[list[str] | None, typer.Option(help="Only visitors with this type of device")] = None,
    country: Annotated[list[str] | None, typer.Option(help="Only visitors from this country, such as DE")] = None,
    campaign: Annotated[list[str] | None, typer.Option(help="Only visitors whom this campaign brought")] = None,
    by: Annotated[
        str | None,
        typer.Option(help=f"A line for each: {', '.join(GROUPS)}"),
    ] = None,
    limit: Annotated[int, typer.Option(help="Most lines to print, those with the most visitors", min=1)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Show the page views and the visitors of any hours, pages, origins or campaigns, each visitor counted once.

    Visitors are estimated from gold.audience_hourly and gold.campaign_audience_hourly; the true number is between the
    bounds in 95 of 100 cases.
    """
    from blogdata.patterns.data_value.sketches import relative_error

    only = {"page": page, "referral_host": referral, "device_type": device, "country": country, CAMPAIGN: campaign}
    asked = _Asked.of(from_, to, {name: values or () for name, values in only.items()}, by)
    lake = Lake(root=str(existing().lake))
    if lake.version(asked.dataset) is None:
        raise not_published(lake, asked.dataset)
    lines = asked.lines(lake)
    shown = sorted(lines, key=lambda line: (-line.visitors.value, line.of))[:limit]
    if asked.by in PERIODS:
        shown.sort(key=lambda line: line.of)
    hours = asked.hours
    published = EventLog(lake).publications(asked.dataset, hours)
    missing, outdated = len(hours) - len(published), asked.outdated(lake, published)
    error = relative_error(LG_K)
    if as_json:
        told = {"lines": [asdict(line) for line in shown], "standard_error": round(error, 5)}
        say_json({**told, "hours": len(hours), "hours_missing": missing, "hours_outdated": outdated})
        return
    _show(shown, asked.by or asked.dimension)
    console.print(f"visitors are estimates: one standard error is {error:.1%}")
    if len(shown) < len(lines):
        console.print(f"{len(shown):,} of {len(lines):,} lines; see --limit")
    if not lines and asked.values:
        values = ", ".join(asked.values)
        console.print(
            f"no page view of these hours has {asked.dimension} {values}; what they have: --by {asked.dimension}",
        )
    if missing:
        console.print(f"{missing:,} of the {len(hours):,} hours are not published")
    if outdated:
        console.print(
            f"{outdated:,} of the {len(hours):,} hours were computed by a version that kept no {asked.dimension}; "
            "to compute them again: blogdata run"
        )


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One line: the value or period it is of, its page views and its visitors."""

    of: str
    page_views: int
    visitors: Estimate


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A question that the sketches can answer.

    Args:
        since: First hour.
        until: Hour after the last one.
        dimension: The dimension whose rows are read.
        values: Wanted values of it; empty: all.
        by: What the lines are grouped by; None: one line.
    """

    since: datetime
    until: datetime
    dimension: str
    values: Sequence[str]
    by: str | None

    @classmethod
    def of(cls, from_: str, to: str, only: Mapping[str, Sequence[str]], by: str | None) -> _Asked:
        """Check a question.

        Raises:
            ConfigurationError: It is about several dimensions at once, or its span is empty.
        """
        since, until = moment(from_, "--from"), moment(to, "--to")
        require_span(since, until)
        if by is not None and by not in GROUPS:
            raise ConfigurationError(
                what=f"visitors are not kept by {by}", where="--by", next_step=f"choose: {', '.join(GROUPS)}"
            )
        chosen = [name for name in DIMENSIONS if only[name] or name == by]
        if len(chosen) > 1:
            raise ConfigurationError(
                what=f"visitors are kept by one dimension at a time, not by {' and '.join(chosen)}",
                where="audience",
                next_step="ask for one of them; combinations are in the visits: blogdata sql "
                '"SELECT count(DISTINCT user_id) FROM silver.visits_enriched WHERE ..."',
            )
        (dimension,) = chosen or [ALL]
        return cls(since=since, until=until, dimension=dimension, values=only.get(dimension, ()), by=by)

    @property
    def dataset(self) -> str:
        """The dataset with the sketches."""
        return CAMPAIGN_AUDIENCE_HOURLY.dataset if self.dimension == CAMPAIGN else DATASET

    @property
    def hours(self) -> tuple[str, ...]:
        """Keys of the hours that are asked for, those that are asked for in part included."""
        last = self.until - timedelta(microseconds=1)
        return between(key_of(self.since, Grain.HOUR), key_of(last, Grain.HOUR), Grain.HOUR)

    def lines(self, lake: Lake) -> list[_Line]:
        """Merge the sketches into one line, or one for each value or period."""
        from blogdata.patterns.data_value import sketches

        first, last = self.hours[0], self.hours[-1]
        end, value = following(last, Grain.HOUR), CAMPAIGN if self.dimension == CAMPAIGN else "value"
        only = {value: self.values} if self.values else {}
        if self.dimension != CAMPAIGN:
            only["dimension"] = [self.dimension]
        columns = ("event_hour", value, "events", "visitors")
        table = lake.columns(self.dataset, columns, since=first, until=end, only=only).to_pydict()
        groups: dict[str, list[Any]] = {}
        for row in zip(*(table[name] for name in columns), strict=True):
            # A campaign's displays may have no page view, and page views no campaign.
            if row[2]:
                groups.setdefault(self._group(row[0], row[1]), []).append(row)
        return [
            _Line(
                of=name,
                page_views=sum(row[2] for row in rows),
                visitors=sketches.estimate((row[3] for row in rows), lg_k=LG_K, where=self.dataset),
            )
            for name, rows in groups.items()
        ]

    def outdated(self, lake: Lake, published: Mapping[str, Entry]) -> int:
        """Count the published hours from before an upgrade that added the dimension.

        Every page view has a value of each dimension, if only `unknown`: an hour with rows has some of each.
        """
        if self.dimension in (ALL, CAMPAIGN):
            return 0
        end, only = following(self.hours[-1], Grain.HOUR), {"dimension": [self.dimension]}
        there = lake.columns(self.dataset, ("event_hour",), since=self.hours[0], until=end, only=only)
        return len({hour for hour, entry in published.items() if entry.rows_out} - set(there[0].to_pylist()))

    def _group(self, hour: str, value: str) -> str:
        if self.by in PERIODS:
            return hour[: PERIODS[self.by]]
        return value if self.by else ", ".join(self.values) or ALL


def _show(lines: Sequence[_Line], of: str) -> None:
    table = TextGrid()
    table.add_column(of)
    for name in ("page views", "visitors", "from", "to"):
        table.add_column(name, justify="right")
    for line in lines:
        one = line.visitors
        table.add_row(line.of, *(f"{number:,}" for number in (line.page_views, one.value, one.low, one.high)))
    console.print(table)
