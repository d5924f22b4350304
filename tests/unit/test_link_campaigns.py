"""The UTM parameters of a link form one campaign, and contain no reader's identity."""

from __future__ import annotations

import pytest

from assets.bronze import link_campaigns

CAMPAIGNS = {
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


@pytest.mark.parametrize(("query", "campaign"), CAMPAIGNS.items())
def test_a_query_has_its_campaign(query: str, campaign: str | None) -> None:
    assert link_campaigns.campaign_of(query) == campaign


def test_a_page_has_the_campaign_of_its_query() -> None:
    assert link_campaigns.campaign_of_page("/a?utm_source=b") == "b / - / -"
    assert {*map(link_campaigns.campaign_of_page, ("/a?c?utm_source=b", "/utm_source=b", "/a?", "?"))} == {None}
