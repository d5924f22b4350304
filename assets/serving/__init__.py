"""Serving: statistics for the blog itself, in PostgreSQL; only if the deployment has a server."""

from assets.serving.daily_stats import daily_stats

SINKS = (daily_stats,)
