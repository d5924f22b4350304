"""Which user agents are crawlers, and of which category, compared with the lists' own packages."""

from __future__ import annotations

import time

import crawlerdetect
import crawleruseragents
import pytest

import blog_log
import oracle_logs
from assets.bronze import crawlers

CHROME = "Mozilla/5.0 (Linux; {}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/88.0.4324.93 Mobile Safari/537.36"
OF_CATEGORY = {
    "ai_assistant": ["Mozilla/5.0; compatible; ChatGPT-User/1.0; +https://openai.com/bot", "Perplexity-User/1.0"],
    "ai_crawler": ["Mozilla/5.0 (compatible; GPTBot/1.2)", "CCBot/2.0", "ClaudeBot/1.0", "Amazonbot/0.1"],
    "feed_reader": ["Feedly/1.0", "Tiny Tiny RSS/1.11 (http://tt-rss.org/)", "NetNewsWire (RSS Reader)"],
    "monitoring": ["Mozilla/5.0+(compatible; UptimeRobot/2.0)", "Pingdom.com_bot_version_1.4"],
    "search": ["Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "bingbot/2.0"],
    "seo": ["Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"],
    "other": ["", "-", "facebookexternalhit/1.1", "Mozilla/5.0 (compatible; NeverSeenBefore-bot/1.0)"],
    "tool": [
        "curl/7.88.1",
        "Wget/1.21",
        "python-requests/2.31.0",
        "axios/1.6.0",
        "Java/17.0.1",
        "Mozilla/5.0 zgrab/0.x",
        "Mozilla/5.0 (compatible; Nmap Scripting Engine; https://nmap.org/book/nse.html)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/90.0 Safari/537.36",
    ],
}
PEOPLE = [
    "Lynx/2.8.9rel.1 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/1.1.1d",
    CHROME.format("Android 10; K"),
    CHROME.format("Android 9; CUBOT_X18_Plus"),
    CHROME.format("Android 6.0; M BOT 60 Build/MRA58K"),
    CHROME.format("Android 4.4.2; M-BOT_51"),
    CHROME.format("Android 4.4; eReader"),
    "Mozilla/5.0 (Unknown; Linux armv7l) AppleWebKit/538.1 (KHTML, like Gecko) Kobo eReader Safari/538.1",
    "Mozilla/5.0 (X11; U; Linux armv7l like Android; en-us) AppleWebKit/531.2+ Version/5.0 Safari/533.2+ Kindle/3.0+",
]


@pytest.mark.parametrize(("category", "agents"), OF_CATEGORY.items())
def test_crawlers_have_a_category(category: str, agents: list[str]) -> None:
    assert {agent: crawlers.category(agent) for agent in agents} == dict.fromkeys(agents, category)


@pytest.mark.parametrize("agent", PEOPLE)
def test_people_have_none(agent: str) -> None:
    assert crawlers.category(agent) is None


def test_no_page_view_of_a_log_is_of_an_agent_that_a_list_names() -> None:
    found = [oracle_logs.request_of(line.decode("utf-8", "replace")) for line in blog_log.lines_of_a_log()]
    agents = {fields["agent"].strip()[1:-1] for fields in found if isinstance(fields, dict)} | {*blog_log.AGENTS}
    assert len(agents) > 300
    assert {agent for agent in agents if crawlers.category(agent)} == {*filter(oracle_logs.is_crawler, agents)}
    left = [agent for agent in agents if crawlers.category(agent) is None]
    detect = crawlerdetect.CrawlerDetect()
    assert [agent for agent in left if crawleruseragents.is_crawler(agent) or detect.is_crawler(agent)] == []


def test_lists_are_identified_by_the_versions_of_their_packages_and_by_the_table_of_categories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = crawlers.versions()
    assert before["crawlerdetect"] == crawlerdetect.__version__
    monkeypatch.setitem(crawlers._OF_TAG, "seo", "other")
    after = crawlers.versions()
    assert {name for name in before if after[name] != before[name]} == {"categories"}


def test_an_agent_made_to_be_slow_is_not() -> None:
    begin = time.perf_counter()
    for agent in ("a-" * 50_000, "Java" * 10_000, "Gecko.1" * 10_000):
        crawlers.category(agent)
    assert time.perf_counter() - begin < 2
