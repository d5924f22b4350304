"""The streams of the blog, by name."""

from assets.transforms import live_ads, live_enriched, live_logs, live_sessions, live_visits

_STREAMS = (live_visits.STREAM, live_enriched.STREAM, live_ads.STREAM, live_sessions.STREAM, live_logs.STREAM)
STREAMS = {stream.name: stream for stream in _STREAMS}
