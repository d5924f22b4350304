"""Which requests of an access log count for nobody, and which clients are crawlers by what they do.

Who acts is a client with its agent. What it does is judged within one hour of arrival, whose lines are always judged
together: the verdict depends on no other hour, and on no run. So a crawler that reads /robots.txt in one hour is a
visitor in the next one, unless it reads the file again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.log_clients import in_networks
from blogdata.services.config import CrawlerSettings, ExcludedRequests

ROBOTS_TXT = "/robots.txt"
_WHO = ("arrival_hour", "client", "agent")


def excluded(exclude: ExcludedRequests) -> Column:
    """Build the condition that the settings exclude a request with client, agent and path."""
    agent = F.lower("agent")
    conditions = [agent.contains(text) for text in exclude.agents]
    if exclude.paths:
        conditions.append(F.col("path").rlike("|".join(map(_pattern, exclude.paths))))
    if exclude.addresses:
        conditions.append(in_networks(F.col("client"), exclude.addresses))
    return _any(conditions)


def declared(crawlers: CrawlerSettings) -> Column:
    """Build the condition that the settings call the client of a request a crawler."""
    networks = crawlers.addresses
    return _any([in_networks(F.col("client"), networks)] if networks else [])


def acting(requests: DataFrame, is_view: Column, crawlers: CrawlerSettings) -> dict[str | None, list[tuple[str, str]]]:
    """Find who acts like a crawler: it reads /robots.txt in the hour of arrival, or views too many pages in it.

    This is an action.

    Args:
        is_view: Condition that a request is a page view, unless its agent is a crawler's.

    Returns:
        Each distinct agent, None if there is none, to the hours and clients that act so with it.
    """
    robots = F.lit(crawlers.robots_txt) & (F.col("path") == ROBOTS_TXT)
    done = requests.groupBy(*_WHO).agg(F.max(robots).alias("robots"), F.count_if(is_view).alias("views"))
    acts = F.when(F.col("robots") | (F.col("views") > crawlers.most_views), F.struct("arrival_hour", "client"))
    found = done.groupBy("agent").agg(F.collect_list(acts).alias("acts")).collect()
    return {row["agent"]: [(hour, client) for hour, client in row["acts"]] for row in found}


def with_acts(requests: DataFrame, acting: Mapping[str | None, Sequence[tuple[str, str]]]) -> DataFrame:
    """Add the column `_acts`, which is true if the client acts like a crawler in the hour of arrival, and else null.

    Args:
        acting: What :func:`acting` has found.
    """
    rows = [(hour, client, agent, True) for agent, acts in acting.items() for hour, client in acts]
    names = [f"_{name}" for name in _WHO]
    table = requests.sparkSession.createDataFrame(
        rows, ", ".join([*(f"{name} string" for name in names), "_acts boolean"])
    )
    same = reduce(Column.__and__, (F.col(name).eqNullSafe(F.col(f"_{name}")) for name in _WHO))
    return requests.join(F.broadcast(table), on=same, how="left").drop(*names)


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
