"""All spellings of an address are one client, also behind the named proxies; what is no address or name is none."""

from __future__ import annotations

import pytest

from blogdata.landing.clients import client_of, is_address, normal_form

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


@pytest.mark.parametrize(("client", "forms"), [*FORMS.items(), (None, NOBODY)])
def test_every_form_of_an_address_is_one_client_and_nothing_else_is_any(
    client: str | None, forms: tuple[str, ...]
) -> None:
    assert {normal_form(form) for form in forms} == {client}
    assert client is None or is_address(client) == client[0].isdecimal() or ":" in client


@pytest.mark.parametrize(("address", "forwarded", "client"), BEHIND)
def test_the_client_is_who_is_behind_named_proxies(address: str, forwarded: str | None, client: str | None) -> None:
    assert client_of(address, forwarded, PROXIES) == client
    assert client_of(address, forwarded, ()) == (None if address == "unix:" else normal_form(address))
