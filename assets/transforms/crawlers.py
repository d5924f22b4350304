"""Crawlers: the user agents of machines, and what kind of machine each is, by two kept-up lists.

Problem: words such as `bot` or `reader` in an agent also match phones and e-readers, and miss most crawlers.
How it works: an agent is a crawler's if one of two lists names it. `crawler-user-agents` names crawlers with tags;
`crawlerdetect` knows more names. The tags, and a small table of well-known names, decide the category. The lists are
packages: an upgrade of a package is an upgrade of a list, and another server for Spark's workers.
The trap: a list is data that decides what is published. Its version is recorded with every publication
(:func:`versions`).
When not to use it: against crawlers that send a browser's agent; see `[logs] exclude`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain

CATEGORIES = ("ai_assistant", "ai_crawler", "feed_reader", "monitoring", "search", "seo", "other", "tool")
"""Categories, the more telling first: an agent with several names is of the first one."""
NO_AGENT = frozenset(("", "-"))
"""Agents of requests that named none. They are of the category `other`."""

_OF_TAG = {
    "ai-crawler": "ai_crawler",
    "feed-reader": "feed_reader",
    "monitoring": "monitoring",
    "search-engine": "search",
    "seo": "seo",
    "http-library": "tool",
    "browser-automation": "tool",
    "scanner": "tool",
}
# What fetches a page because a person has asked an assistant, and what collects pages to train or to feed one.
_OF_NAME = {
    "ai_assistant": (
        "Amzn-User|ChatGPT-User|Claude-User|cohere-ai|Devin|DuckAssistBot|Gemini-Deep-Research|Google-Agent"
        "|Google-NotebookLM|IsonAI-User|kagi-fetcher|meta-externalfetcher|MistralAI-User|Perplexity-?User"
    ),
    "ai_crawler": "Amazonbot|Diffbot|ImagesiftBot|PanguBot|Timpibot|Webzio-Extended|YouBot",
}
_OF_WORD = {
    "feed_reader": r"feed|\brss|atom\b|podcast|reader|reeder|liferea",
    "monitoring": "monitor|uptime|health|checker",
    "search": "search",
    "seo": r"\bseo|backlink",
    "tool": r"java|http(?!s?:)|client|curl|lib|php|perl|postman|python|ruby|undici|headless|scan",
}
"""Words of agents that only the list without tags names."""
_PEOPLE = re.compile(
    r"^Lynx/\S+ libwww-FM/\S+|\be-?reader\b|\b(?:pocketbook|sony) reader\b|; m[ _-]?bot[ _-]?\d+|\bcubot",
    re.IGNORECASE,
)
"""Devices and browsers of people whose names look like crawlers'."""
_LONGEST_AGENT = 1024


def category(agent: str) -> str | None:
    """Find the category of an agent, None if it is a person's; characters after the first 1,024 are ignored."""
    return _category(agent[:_LONGEST_AGENT])


@lru_cache(maxsize=16_384)
def _category(agent: str) -> str | None:
    from crawlerdetect import CrawlerDetect
    from crawleruseragents import is_crawler

    if agent in NO_AGENT:
        return "other"
    text = _PEOPLE.sub("", agent)
    tags = [tag for pattern, known in _tagged() if pattern.search(text) for tag in known] if is_crawler(text) else None
    if tags is None and not CrawlerDetect().is_crawler(text):
        return None
    of_text = chain(_found(_OF_NAME, text), (_OF_TAG.get(tag, "other") for tag in tags or ()))
    of_word = () if tags else _found(_OF_WORD, text)
    return min((*of_text, *of_word), key=CATEGORIES.index, default="other")


@cache
def _tagged() -> list[tuple[re.Pattern[str], list[str]]]:
    """Return the expressions of the list with tags, each with its tags."""
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA

    return [(re.compile(entry["pattern"]), entry["tags"]) for entry in CRAWLER_USER_AGENTS_DATA]


def versions() -> dict[str, str]:
    """Return what identifies the installed lists, without reading them: versions, and a digest of the own tables."""
    from importlib.metadata import version

    tables = repr((CATEGORIES, _OF_TAG, _OF_NAME, _OF_WORD, _PEOPLE.pattern))
    own = {"categories": hashlib.sha256(tables.encode()).hexdigest()[:8]}
    return {**{name: version(name) for name in ("crawler-user-agents", "crawlerdetect")}, **own}


def _found(names: Mapping[str, str], text: str) -> Iterator[str]:
    return (kind for kind, pattern in names.items() if re.search(pattern, text, re.IGNORECASE))
