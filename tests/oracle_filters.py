"""Decides which requests of an access log are page views, in plain Python, sharing no code with the platform."""

from __future__ import annotations

ASSETS = tuple(
    ".css .js .mjs .png .jpg .jpeg .gif .ico .svg .webp .avif .woff .woff2 .ttf .otf .eot .map .mp4 .webm "
    ".mp3 .ogg .zip .gz .tar .tgz .jar .exe .iso .deb .rpm".split()
)
ASSET_PATHS = {"/robots.txt", "/favicon.ico", "/sitemap.xml"}
FEED_NAMES = {"index.xml", "atom.xml", "rss.xml", "feed.xml"}
DEVICES = ("ereader", "e-reader", "cubot", "m bot", "m-bot", "m_bot")
"""Words in agents of phones and e-readers."""


def filter_of(method: str, status: int, path: str, query: str, agent: str | None) -> str | None:
    """Return the first filter that removes a request, None for a page view; `agent` is None if none was logged."""
    if method != "GET" or not path.startswith("/"):
        return "method"
    if not (200 <= status < 300 or status == 304):
        return "status"
    if path.lower().endswith(ASSETS) or path in ASSET_PATHS:
        return "asset"
    segments = path.split("/")
    if (
        {"feed", "rss", "atom"} & set(segments)
        or path.endswith((".rss", ".atom"))
        or segments[-1] in FEED_NAMES
        or any(mark in query for mark in ("flav=rss", "flav=atom", "feed="))
    ):
        return "feed"
    return "crawler" if agent is not None and is_crawler(agent) else None


_crawlers: dict[str, bool] = {}


def is_crawler(agent: str) -> bool:
    """Tell whether a user agent is a machine's, by the functions of the crawler lists' own packages."""
    if agent not in _crawlers:
        import crawlerdetect
        import crawleruseragents

        known = agent in ("", "-") or crawleruseragents.is_crawler(agent)
        without = agent.lower()
        for device in DEVICES:
            without = without.replace(device, "")
        _crawlers[agent] = known or crawlerdetect.CrawlerDetect().is_crawler(
            without if without != agent.lower() else agent
        )
    return _crawlers[agent]
