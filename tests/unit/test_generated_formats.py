"""Generated formats of Apache: generated lines are parsed into the same fields as by `apachelogs`."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import apachelogs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blogdata.landing.log_formats import formats

_WORDS = st.text("abcXYZ019._/-", min_size=1, max_size=9)
_TEXTS = st.text('ab /?=%[]{}();:,.-"\\0', max_size=20).map(
    lambda text: text.replace("\\", "\\\\").replace('"', '\\"') or "-"
)
_ADDRESSES = st.ip_addresses().map(str)
_NUMBERS = st.integers(0, 10**9).map(str)
_NEEDED = {("%h", "%a"): _ADDRESSES, ('"%r"', '\\"%r\\"'): _TEXTS, ("%>s", "%s"): st.integers(100, 599).map(str)}
_FURTHER = {
    '"%{Referer}i"': _TEXTS,
    '"%{User-Agent}i"': _TEXTS,
    '"%{Cookie}i"': _TEXTS,
    '"%{X-Forwarded-For}i"': st.lists(_ADDRESSES, min_size=1, max_size=3).map(", ".join),
    "%v": _WORDS.map(lambda name: f"{name}.example"),
    "%p": st.integers(1, 65535).map(str),
    "%b": _NUMBERS | st.just("-"),
    "%l": st.just("-"),
    "%u": _WORDS,
    "%D": _NUMBERS,
    "%T": _NUMBERS,
    "%{JSESSIONID}C": _WORDS,
    "%{UNIQUE_ID}e": _WORDS,
    "%k": st.integers(0, 9).map(str),
}
_TIMES = {"%t": "[%d/%b/%Y:%H:%M:%S +0000]", "%{%s}t": None, "%{%Y-%m-%dT%H:%M:%S%z}t": "%Y-%m-%dT%H:%M:%S+0000"}
_NAMES = {"%v": "host", "%b": "bytes", '"%{Referer}i"': "referrer", '"%{User-Agent}i"': "agent"}
_NAMES |= {'"%{X-Forwarded-For}i"': "forwarded"}


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a format declaration and a line that matches it."""
    moment = datetime.fromtimestamp(draw(st.integers(10**9, 2 * 10**9)), timezone.utc)
    time = draw(st.sampled_from([*_TIMES]))
    stamp = _TIMES[time]
    parts = [(time, moment.strftime(stamp) if stamp else str(int(moment.timestamp())))]
    parts += [(draw(st.sampled_from(names)), draw(values)) for names, values in _NEEDED.items()]
    chosen = draw(st.lists(st.sampled_from([*_FURTHER]), unique=True, max_size=6))
    parts += [(name, draw(_FURTHER[name])) for name in chosen]
    parts = draw(st.permutations(parts))
    separator = draw(st.sampled_from([" ", " | ", "\t", " <> "]))
    written = [f'"{value}"' if '"' in name else value for name, value in parts]
    return separator.join(name for name, _ in parts), separator.join(written)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(lines())
def test_a_generated_format_reads_what_apachelogs_reads(drawn: tuple[str, str]) -> None:
    declaration, line = drawn
    plain = declaration.replace('\\"', '"')
    expected = apachelogs.parse(plain, line).directives
    parsed = formats((declaration,)).of_log().read(line)
    assert isinstance(parsed, tuple), line
    name, read = parsed
    assert name == "declared", line
    found = {name.strip('"'): value for name, value in expected.items()}
    assert read["address"] == found.get("%h", found.get("%a"))
    assert int(read["status"]) == found.get("%>s", found.get("%s"))
    assert _said(read["request"]) == found["%r"]
    for directive, field in _NAMES.items():
        if directive in plain:
            value = found[directive.strip('"')]
            assert _said(read[field]) == (None if value is None else str(value))


def _said(text: str) -> str | None:
    """Return the text without Apache's escapes; None for a dash."""
    return None if text == "-" else re.sub(r"\\(.)", r"\1", text)
