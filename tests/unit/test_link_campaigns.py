"""The UTM parameters of a link form one campaign, and contain no reader's identity."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

import oracle_requests
from assets.bronze import link_campaigns
from lineage.odd_lines import drawn

TOLD = {
    "utm_source=newsletter&utm_medium=email&utm_campaign=Spring+Sale": "newsletter / email / spring sale",
    "p=7&UTM_Source=Mastodon": "mastodon / - / -",
    "utm_medium=b&utm_source=a": "a / b / -",
    "utm_source=a&amp;utm_medium=b": "a / b / -",
    "utm_source=a&utm_source=b": "a / - / -",
    "utm%5fcampaign=caf%C3%a9": "- / - / café",
    r"utm_campaign=caf\xc3\xa9": "- / - / café",
    "utm_campaign=100%+off": "- / - / 100%+off",
    "utm_source=a#b": "a / - / -",
    "utm_source=%20a%00%0A%E2%80%8Bb+": "a b / - / -",
    "utm_source=news&utm_medium=ann@example.org": "news / other / -",
    "utm_source=news&utm_campaign=ann%40example.org": "news / - / other",
    "utm_source=ann%252540example.org&utm_medium=%zz%40": "other / other / -",
    f"utm_source={'x' * 64}": f"{'x' * 64} / - / -",
    f"utm_source={'x' * 65}": "other / - / -",
    "utm_source=&utm_medium=+": None,
    "utm_term=a&utm_content=b&utm_id=c": None,
    "xutm_source=a": None,
    "a=utm_source=b": None,
    "utm_source": None,
    "": None,
}
_PIECES = st.sampled_from(
    [
        *(
            "utm_source=",
            "utm_medium=",
            "utm_campaign=",
            "UTM_CAMPAIGN=",
            "utm%5Fsource=",
            "utm_term=",
            "utm_",
            "=",
            "x",
        ),
        *("&", "&", "&", "&amp;", ";", "#", "?", " ", "+", "Ab", "É", "/", "%20", "%c3%a9", "%E9", "%zz", r"\xc3\xa9"),
        *("@", "%40", "%2540", r"\x40", r"\\", r"\"", "%00", "%E2%80%8B", "x" * 33),
    ]
)
_QUERIES = st.lists(_PIECES, max_size=14).map("".join)


def test_a_query_has_the_campaign_that_the_oracle_finds() -> None:
    queries = [*TOLD, *(one.decode() for one in drawn(_QUERIES.map(str.encode), 600))]
    found = {query: link_campaigns.campaign_of(query) for query in queries}
    assert found == {one: oracle_requests.campaign_of(one) for one in queries}
    assert {one: found[one] for one in TOLD} == TOLD
    assert not any("@" in campaign for campaign in found.values() if campaign)
    assert sum(campaign is not None for campaign in found.values()) > 100


@pytest.mark.parametrize(
    ("page", "campaign"),
    [
        ("/a?utm_source=b", "b / - / -"),
        ("/a?c?utm_source=b", None),
        ("/utm_source=b", None),
        ("/a?", None),
        ("?", None),
    ],
)
def test_a_page_has_the_campaign_of_its_query(page: str, campaign: str | None) -> None:
    assert link_campaigns.campaign_of_page(page) == campaign
