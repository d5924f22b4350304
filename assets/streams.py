"""The streams of the blog, by name."""

from assets.transforms import live_ads, live_enriched, live_logs, live_sessions, live_visits

STREAMS = {
    module.STREAM.name: module.STREAM for module in (live_visits, live_enriched, live_ads, live_sessions, live_logs)
}
