"""The streams of the blog, by name."""

from assets.streams import live_ads, live_sessions, live_visits

STREAMS = {stream.name: stream for stream in (live_visits.STREAM, live_ads.STREAM, live_sessions.STREAM)}
