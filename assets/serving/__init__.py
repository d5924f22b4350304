"""Serving: what the blog itself reads, in PostgreSQL; there only when the deployment has one."""

from assets.serving.daily_stats import daily_stats

SINKS = (daily_stats,)
