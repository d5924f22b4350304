r"""The request and the referrer of a log line as Columns: method, path and query; referring host.

A page has one name, however its path was sent and logged: `/caf%c3%a9`, `/caf%C3%A9`, Apache's `/caf\xc3\xa9` and
`/café` are the page `/café`, as a browser shows it. The escapes of a server are read as percent escapes. Of these,
valid UTF-8 outside ASCII is decoded; all others stay, in upper case: `%2F`, `%3F` and `%23` are no separators, and
`%7E` and `%E9` are left as sent. Slashes and dots are not touched.

Sources: RFC 3986, section 2.1 and 6.2.2.1; RFC 9112, section 3.2 (forms of a target); the Unicode Standard, table 3-7
(well-formed UTF-8).
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_NEXT = "%[89AB][0-9A-F]"
_CHARACTER = "|".join(
    (
        f"%(?:C[2-9A-F]|D[0-9A-F]){_NEXT}",
        f"%E0%[AB][0-9A-F]{_NEXT}",
        f"%E[1-9A-CEF](?:{_NEXT}){{2}}",
        f"%ED%[89][0-9A-F]{_NEXT}",
        f"%F0%[9AB][0-9A-F](?:{_NEXT}){{2}}",
        f"%F[1-3](?:{_NEXT}){{3}}",
        f"%F4%8[0-9A-F](?:{_NEXT}){{2}}",
    )
)
"""A character outside ASCII, in percent escapes of its UTF-8."""
_TOKEN = f"(?i){_CHARACTER}|%[0-9A-F]{{2}}|[^%]++|%"
_ORIGIN = r"^[a-zA-Z][a-zA-Z0-9+.-]*+://[^/?#]*+/?+"
_AUTHORITY = r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*+://)?+(?:[^/?#@\s]*+@)?+([^/?#]*+)"
_HOST = r"^([\p{L}\p{M}\p{N}._-]++|\[[0-9a-f:.]++\])(?::\d*+)?+\z"


def with_request(read: DataFrame) -> DataFrame:
    """Add method, path and query of the request, such as `GET /a?b=c HTTP/1.1`, of each line.

    They are empty if the request does not have three parts. The path begins with `/` unless the request is for no path,
    like `OPTIONS *`.
    """
    request = F.col("request")
    method, protocol = F.substring_index(request, " ", 1), F.substring_index(request, " ", -1)
    between = F.length(request) - F.length(method) - F.length(protocol) - 2
    target = F.substring(request, F.length(method) + 2, between)
    # A space in the target is not allowed, and sent: only the protocol tells where it ends.
    usual = (between >= 0) & (~target.contains(" ") | protocol.startswith("HTTP/"))
    read = read.withColumns(
        {
            "method": F.when(usual, method).otherwise(F.lit("")),
            "_target": F.when(usual, _without_origin(target)).otherwise(F.lit("")),
        }
    )
    target, mark = F.col("_target"), F.instr(F.col("_target"), "?")
    parts = {
        "path": page(F.when(mark > 0, F.substring(target, F.lit(1), mark - 1)).otherwise(target)),
        "query": F.when(mark > 0, F.substring(target, mark + 1, F.length(target))).otherwise(F.lit("")),
    }
    return read.withColumns(parts).drop("_target")


def page(path: Column) -> Column:
    """Return the one name of the page with a path, as logged."""
    return F.when(path.contains("%") | path.contains("\\"), _decoded(path)).otherwise(path)


def referring_host(referrer: Column) -> Column:
    """Extract the referring host of a request, in lower case; null if there is none."""
    authority = F.lower(page(F.regexp_extract(referrer, _AUTHORITY, 1)))
    host = F.regexp_extract(authority, _HOST, 1)
    return F.when(~referrer.isin("", "-") & (host != ""), host)


def percent_escaped(text: Column) -> Column:
    """Return the text as it was sent: the escapes of a server as percent escapes."""
    # Two backslashes are one: the first of them begins no escape of the second.
    escaped = F.replace(text, F.lit("\\\\"), F.lit("%5C"))
    escaped = F.regexp_replace(escaped, r"\\x([0-9A-Fa-f]{2})", "%$1")
    return F.replace(escaped, F.lit('\\"'), F.lit("%22"))


def as_sent(text: str) -> str:
    """Return the text as it was sent: the escapes of a server as percent escapes."""
    # Two backslashes are one: the first of them begins no escape of the second.
    text = re.sub(r"\\x([0-9A-Fa-f]{2})", r"%\1", text.replace(r"\\", "%5C"))
    return text.replace(r"\"", "%22")


def _without_origin(target: Column) -> Column:
    return F.when(target.startswith("/"), target).otherwise(F.regexp_replace(target, _ORIGIN, "/"))


def _decoded(text: Column) -> Column:
    tokens = F.regexp_extract_all(percent_escaped(text), F.lit(_TOKEN), F.lit(0))
    return F.array_join(F.transform(tokens, _decoded_token), "")


def _decoded_token(token: Column) -> Column:
    character = F.unhex(F.replace(token, F.lit("%"), F.lit(""))).cast("string")
    of_escape = F.when(F.length(token) > 3, character).otherwise(F.upper(token))
    return F.when(token.startswith("%"), of_escape).otherwise(token)
