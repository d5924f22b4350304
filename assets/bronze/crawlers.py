"""Crawlers: the user agents of machines, and what kind of machine each is, by two kept-up lists.

Problem: words such as `bot` or `reader` in an agent also match phones and e-readers, and miss most crawlers.
How it works: an agent is a crawler's if one of two lists names it. `crawler-user-agents` names crawlers with tags;
`crawlerdetect` knows more names, and what to remove from an agent before it looks for them. The tags, and a small table
of well-known names, decide the category. The lists are packages: an upgrade of a package is an upgrade of a list.
The trap: a list is data that decides what is published. Its version is recorded with every publication
(:func:`versions`).
When not to use it: against crawlers that send a browser's agent; see `[logs] exclude`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeVar

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
    r"^Lynx/\S+ libwww-FM/\S+|\be-?reader\b|\b(?:pocketbook|sony) reader\b|; m[ _-]?bot[ _-]?\d+|\bcubot", re.IGNORECASE
)
"""Devices and browsers of people whose names look like crawlers'."""
_LONGEST_AGENT = 1024
_CHUNK = 50

Patterns = list[re.Pattern[str]]
Item = TypeVar("Item", str, "tuple[str, tuple[str, ...]]")


def category(agent: str) -> str | None:
    """Find the category of an agent, None if it is a person's; characters after the first 1,024 are ignored."""
    return _category(agent[:_LONGEST_AGENT])


@lru_cache(maxsize=16_384)
def _category(agent: str) -> str | None:
    if agent in NO_AGENT:
        return "other"
    text = _PEOPLE.sub("", agent)
    known = {
        tag
        for chunk, patterns in _tagged()
        if chunk.search(text)
        for pattern, tags in patterns
        if pattern.search(text)
        for tag in tags
    }
    if not known and not _is_untagged(text):
        return None
    of_text = chain(_named(_OF_NAME, text), (_OF_TAG.get(tag, "other") for tag in known))
    of_word = () if known else _named(_OF_WORD, text)
    return min((*of_text, *of_word), key=CATEGORIES.index, default="other")


@lru_cache(maxsize=1)
def _tagged() -> list[tuple[re.Pattern[str], list[tuple[re.Pattern[str], tuple[str, ...]]]]]:
    """Compile the list with tags, where case counts."""
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA

    entries = ((entry["pattern"], tuple(entry["tags"])) for entry in CRAWLER_USER_AGENTS_DATA)
    return [
        (_any(pattern for pattern, _ in chunk), [(re.compile(pattern), tags) for pattern, tags in chunk])
        for chunk in _chunks(entries)
    ]


@lru_cache(maxsize=1)
def _untagged() -> tuple[re.Pattern[str], Patterns]:
    """Compile what is taken from an agent, in any case, and the list that is then applied to what is left of it."""
    from crawlerdetect.providers import crawlers, exclusions

    patterns = [_any(chunk) for chunk in _chunks({_lowered(pattern) for pattern in crawlers.data})]
    return re.compile("|".join(exclusions.data), re.IGNORECASE), patterns


def _is_untagged(text: str) -> bool:
    removed, patterns = _untagged()
    rest = removed.sub("", text).strip().lower()
    return any(chunk.search(rest) for chunk in patterns)


def versions() -> dict[str, str]:
    """Return what identifies the lists, without reading them: versions, and a digest of the tables of this module."""
    from importlib.metadata import version

    tables = repr((CATEGORIES, _OF_TAG, _OF_NAME, _OF_WORD, _PEOPLE.pattern))
    packages = {name: version(name) for name in ("crawler-user-agents", "crawlerdetect")}
    return {**packages, "categories": hashlib.sha256(tables.encode()).hexdigest()[:8]}


def _named(names: Mapping[str, str], text: str) -> Iterator[str]:
    return (kind for kind, pattern in names.items() if re.search(pattern, text, re.IGNORECASE))


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


def _lowered(pattern: str) -> str:
    """Return the expression for text in lower case, which is searched many times faster than text in any case."""
    # A repetition that an expression begins with changes no result, and takes quadratic time.
    shorter = re.sub(r"^\[[^\]]*\]\*", "", pattern)
    return re.sub(r"\\.|[A-Z]", lambda match: match[0] if match[0][0] == "\\" else match[0].lower(), shorter)


def _chunks(items: Iterable[Item]) -> Iterator[Sequence[Item]]:
    """Split expressions into chunks that mostly begin with one letter: Python skips all text without this letter."""
    ordered = sorted(items)
    return (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
