"""Which requests of an access log count for nobody, and which clients are crawlers by what they do.

Who acts is a client with its agent. What it does is judged within one hour of arrival, whose lines are always judged
together: the verdict depends on no other hour, and on no run. So a crawler that reads /robots.txt in one hour is a
visitor in the next one, unless it reads the file again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.log_clients import in_networks
from services.log_filters import LogFilters

ROBOTS_TXT = "/robots.txt"


def excluded(filters: LogFilters) -> Column:
    """Build the condition that the settings exclude a request with client, agent and path."""
    agent = F.lower("agent")
    conditions = [agent.contains(text) for text in filters.agents]
    if filters.paths:
        conditions.append(F.col("path").rlike("|".join(map(_pattern, filters.paths))))
    if filters.addresses:
        conditions.append(in_networks(F.col("client"), filters.addresses))
    return _any(conditions)


def declared(filters: LogFilters) -> Column:
    """Build the condition that the settings call the client of a request a crawler."""
    networks = filters.crawler_addresses
    return _any([in_networks(F.col("client"), networks)] if networks else [])


def with_crawlers_by_behaviour(requests: DataFrame, is_view: Column, filters: LogFilters) -> DataFrame:
    """Add the column `_acts`: the client reads /robots.txt in the hour of arrival, or views too many pages in it.

    Args:
        requests: arrival_hour, client, agent, path, reasons, and anything else.
        is_view: Condition that a request is a page view by everything else.
        filters: The settings.
    """
    who = [F.col(name).alias(f"_{name}") for name in ("arrival_hour", "client", "agent")]
    robots = F.lit(filters.robots_txt) & (F.size("reasons") == 0) & (F.col("path") == ROBOTS_TXT)
    views = F.coalesce(is_view, F.lit(False))
    acts = (
        requests.where(robots | views)
        .groupBy(*who)
        .agg(F.max(robots).alias("_robots"), F.count_if(views).alias("_views"))
        .where(F.col("_robots") | (F.col("_views") > filters.most_views))
        .select("_arrival_hour", "_client", "_agent", F.lit(True).alias("_acts"))
    )
    same = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in ("arrival_hour", "client", "agent")]
    joined = requests.join(F.broadcast(acts), on=same[0] & same[1] & same[2], how="left")
    return joined.drop("_arrival_hour", "_client", "_agent")


def _pattern(path: str) -> str:
    """Return the expression of a path: a pattern with `*` or `?` for all of it, else what it begins with."""
    parts = [{"*": ".*", "?": "."}.get(part) or _quoted(part) for part in re.split(r"([*?])", path)]
    return f"^{''.join(parts)}" + (r"\z" if len(parts) > 1 else "")


def _quoted(text: str) -> str:
    return re.sub(r"([^\w/])", r"\\\1", text)


def _any(conditions: Sequence[Column]) -> Column:
    found = F.lit(False)
    for condition in conditions:
        found = found | F.coalesce(condition, F.lit(False))
    return found
