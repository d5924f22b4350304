"""Generated formats of Apache: what was written into a line is read from it."""

from __future__ import annotations

from datetime import datetime, timezone

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blogdata.landing.log_formats import formats, time_of

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
    "%{JSESSIONID}C": _WORDS,
    "%k": st.integers(0, 9).map(str),
}
_SEPARATORS = (" ", " | ", "\t", " <> ")
_TIMES = {"%t": "[%d/%b/%Y:%H:%M:%S +0000]", "%{%s}t": "%s", "%{%Y-%m-%dT%H:%M:%S%z}t": "%Y-%m-%dT%H:%M:%S+0000"}
_FIELDS = {"%h": "address", "%a": "address", '"%r"': "request", '\\"%r\\"': "request", "%>s": "status", "%s": "status"}
_FIELDS |= {"%v": "host", "%b": "bytes", '"%{Referer}i"': "referrer", '"%{User-Agent}i"': "agent"}
_FIELDS |= {'"%{X-Forwarded-For}i"': "forwarded"}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(10**9, 2 * 10**9), st.sampled_from([*_TIMES]), st.sampled_from([" ", " | ", "\t", " <> "]), st.data()
)
def test_a_line_in_a_generated_format_has_what_was_written(
    seconds: int, time: str, separator: str, data: st.DataObject
) -> None:
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    values = {time: moment.strftime(_TIMES[time].replace("%s", str(seconds)))}
    values |= {data.draw(st.sampled_from(names)): data.draw(drawn) for names, drawn in _NEEDED.items()}
    chosen = data.draw(st.lists(st.sampled_from([*_FURTHER]), unique=True, max_size=6))
    values |= {name: data.draw(_FURTHER[name]) for name in chosen}
    names = data.draw(st.permutations([*values]))
    line = separator.join(f'"{values[name]}"' if '"' in name else values[name] for name in names)
    read = formats((separator.join(names),)).of_log().read(line)
    assert isinstance(read, tuple), line
    assert read[0] == "declared", line
    assert {_FIELDS[name]: values[name] for name in names if name in _FIELDS}.items() <= read[1].items(), line
    assert time_of(read[1]["time"]) == moment
