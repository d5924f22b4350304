"""The campaign of a link, from the UTM parameters that it brings: source, medium and name.

Problem: whoever puts a link into a newsletter marks it with `utm_source`, `utm_medium` and `utm_campaign`, and wants to
know how many came by it. The page's name has no query, so the parameters are read before it is cut off.
How it works: keys are found in either case, the first of several counts; values are decoded as a form's (`%C3%A9`, `+`
for a blank). One text has all three parts, in lower case, such as `newsletter / email / spring`; a part that is missing
is `-`.
The trap: who writes a link may put a reader into it. A value with an `@`, or a long one, is named `other`.
Source: WHATWG URL Standard, section 5.1 (application/x-www-form-urlencoded parsing).
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from assets.bronze.request_targets import as_sent

PARTS = ("source", "medium", "campaign")
LONGEST = 64
"""Characters of a value that is named."""
OTHER, MISSING = "other", "-"
_KEY = "utm(?:_|%5F)"
_PARAMETERS = tuple(re.compile(f"(?:^|[&;]){_KEY}{part}=([^&#]*)", re.ASCII | re.IGNORECASE) for part in PARTS)
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_ANY_AT = re.compile("@|%(?:25)*40")


def campaign_of_page(page: str) -> str | None:
    """Return the campaign of a page that may have a query; None without one."""
    _, mark, query = page.partition("?")
    return campaign_of(query) if mark else None


def campaign_of(query: str) -> str | None:
    """Return the campaign in the query of a page view, such as `newsletter / email / -`; None without one."""
    # The `;` is that of an `&amp;` that was copied from HTML.
    parts = [_value(match[1]) if match else "" for match in (parameter.search(query) for parameter in _PARAMETERS)]
    return " / ".join(part or MISSING for part in parts) if any(parts) else None


def _value(sent: str) -> str:
    sent = as_sent(sent)
    decoded = sent if _NO_ESCAPE.search(sent) else unquote_plus(sent)
    text = re.sub(" +", " ", "".join(character if character.isprintable() else " " for character in decoded)).strip(" ")
    return OTHER if _ANY_AT.search(text) or len(text) > LONGEST else text.lower()
