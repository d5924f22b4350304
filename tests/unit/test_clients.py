"""All spellings of an address are one client, also behind the named proxies; what is no address or name is none."""

from __future__ import annotations

from hypothesis import strategies as st

import oracle_clients
from blogdata.landing.clients import client_of, is_address, normal_form
from lineage.odd_lines import drawn

FORMS = {
    "203.0.113.9": (
        "203.0.113.9",
        "203.0.113.9:4711",
        "::ffff:203.0.113.9",
        "[::FFFF:CB00:7109]:80",
        "0::ffff:cb00:7109",
    ),
    "2001:db8::1": ("2001:db8::1", "2001:DB8:0:0:0:0:0:1", "[2001:0db8::0001]", "[2001:db8::1]:443", "2001:db8::1%e"),
    "fe80::1": ("fe80::1%eth0", "[fe80::1%25eth0]:80", "FE80:0::0:1"),
    "2001:db8:0:1:1:1:1:1": ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
    "2001:0:0:1::1": ("2001:0:0:1:0:0:0:1", "2001::1:0:0:0:1"),
    "2001:db8::1:0:0:1": ("2001:db8:0:0:1:0:0:1", "2001:db8:0:0:1::1"),
    "::": ("::", "0:0:0:0:0:0:0:0", "[::]:80"),
    "1::": ("1::", "1:0:0:0:0:0:0:0"),
    "64:ff9b::102:304": ("64:ff9b::1.2.3.4",),
    "a.example.net": ("a.example.net", "A.Example.NET", "a.example.net."),
    "localhost": ("localhost",),
}
NOBODY = (
    *("", "-", "unix:", "unix:/run/a.sock", "\0", "\ufeff203.0.113.9", "\0\x00203.0.113.9", "256.1.1.1", "010.0.0.1"),
    *("1.2.3", "1.2.3.4.5", "1.2.3.4.", "203.0.113.9:", "203.0.113.9:123456", "[203.0.113.9]", "[::1", "::1]", ":::"),
    *("1::2::3", ":1::2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "::12345", "::g", "fe80::1%"),
    *("fe80::1%a%b", "::1.2.3", "::1.2.3.400", "a..b", ".a", "a.1", "a b", "a/b", "é.example", "a.example:80"),
    *("<script>", "a" * 254, "1:" * 500_000),
)
_GROUPS = st.sampled_from(["0", "00", "0000", "1", "db8", "0DB8", "ffff", "a0", "10"])
_IPV4 = st.sampled_from(["10.0.0.2", "10.255.0.1", "11.0.0.2", "192.0.2.7", "192.0.2.8", "0.0.0.0"])
_PIECES = st.sampled_from(["0", "1", "10", "255", "256", "ffff", ".", ":", "::", "[", "]", "%e", "-", "a", "G", " "])

PROXIES = ("10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48", "::1", "unix:")
BEHIND = [
    ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
    ("10.0.0.2", "6.6.6.6, 198.51.100.1", "198.51.100.1"),
    ("10.0.0.2", "198.51.100.1, 10.9.9.9,2001:DB8:1:0::5", "198.51.100.1"),
    ("::ffff:10.0.0.2", "[2001:db8::8]:4711", "2001:db8::8"),
    ("unix:", "198.51.100.1:80", "198.51.100.1"),
    ("unix:", "-", None),
    ("11.0.0.2", "198.51.100.1", "11.0.0.2"),
    ("a.example", "198.51.100.1", "a.example"),
    ("-", "198.51.100.1", None),
    ("10.0.0.2", "-", "10.0.0.2"),
    ("10.0.0.2", "", "10.0.0.2"),
    ("10.0.0.2", None, "10.0.0.2"),
    ("10.0.0.2", "unknown", "10.0.0.2"),
    ("10.0.0.2", "198.51.100.1, unknown, 10.0.0.3", "10.0.0.3"),
    ("10.0.0.2", "198.51.100.1,", "10.0.0.2"),
    ("10.0.0.2", "10.0.0.3, 10.0.0.4", "10.0.0.3"),
    ("10.0.0.2", "for=6.6.6.6, for=198.51.100.1;proto=https;by=10.0.0.3", "198.51.100.1"),
    ("10.0.0.2", r"For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
    ("10.0.0.2", r"proto=http; for=\x22198.51.100.1:80\x22", "198.51.100.1"),
    ("10.0.0.2", "for=198.51.100.1, for=_hidden", "10.0.0.2"),
    ("10.0.0.2", "proto=https", "10.0.0.2"),
]
_IPV6 = st.sampled_from(["2001:db8:1::9", "2001:DB8:1:0:0:0:0:9", "2001:db8:2::9", "::1", "::2", "::ffff:10.0.0.1"])
_WORDS = st.sampled_from(
    ["-", "", "unknown", "a.example", "for=_x", "unix:", "for=", "by=10.0.0.9", "for=10.0.0.7;proto=http"]
)


@st.composite
def written_ipv6(draw: st.DrawFn) -> str:
    """Draw a spelling of an IPv6 address."""
    groups = draw(st.lists(_GROUPS, min_size=8, max_size=8))
    text = ":".join(groups)
    begin, end = sorted((draw(st.integers(0, 8)), draw(st.integers(0, 8))))
    if draw(st.booleans()) and begin < end:
        text = ":".join(groups[:begin]) + "::" + ":".join(groups[end:])
    elif draw(st.booleans()):
        text = ":".join(groups[:6]) + ":" + draw(_IPV4)
    port = draw(st.sampled_from(["", ":80"]))
    return f"[{text}]{port}" if draw(st.booleans()) else text + draw(st.sampled_from(["", "%eth0"]))


def test_every_form_of_an_address_is_one_client_and_nothing_else_is_any() -> None:
    told = {form: normal for normal, forms in FORMS.items() for form in forms} | dict.fromkeys(NOBODY)
    soup = st.lists(_PIECES, max_size=12).map("".join)
    texts = [*told, *(one.decode() for one in drawn((written_ipv6() | _IPV4 | soup).map(str.encode), 500))]
    clients = {text: normal_form(text) for text in texts}
    expected = {one: None if one == "unix:" else oracle_clients.hop_of(one) for one in texts}
    assert clients == expected
    assert {one: clients[one] for one in told} == told
    places = {one: is_address(one) for one in clients.values() if one}
    assert places == {one: oracle_clients.place_of(one) is not None for one in places}


def test_the_client_behind_named_proxies_is_the_one_that_plain_python_finds() -> None:
    words = _IPV4 | _IPV6 | _WORDS
    lists = st.tuples(_IPV4 | _IPV6 | _WORDS, st.lists(words, max_size=4).map(", ".join)).map("|".join)
    drawn_ones = [tuple(one.decode().split("|")) for one in drawn(lists.map(str.encode), 600)]
    chains = [(address, forwarded) for address, forwarded, _ in BEHIND] + drawn_ones
    for proxies in (PROXIES, ("10.0.0.0/8",), ()):
        found = {at: client_of(a, f, proxies) for at, (a, f) in enumerate(chains)}
        assert found == {at: oracle_clients.client_of(a, f or "-", proxies) for at, (a, f) in enumerate(chains)}
        told = dict(enumerate(expected for _, _, expected in BEHIND))
        assert proxies != PROXIES or {at: found[at] for at in told} == told
        assert proxies or all(found[at] == oracle_clients.client_of(a) for at, (a, _) in enumerate(chains))
