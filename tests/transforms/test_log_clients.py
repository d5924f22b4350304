"""All spellings of an address are one client; a text that is no address or host name is none."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import oracle_clients
from assets.transforms import log_clients
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


@pytest.mark.campaign
def test_every_form_of_an_address_is_one_client_and_nothing_else_is_any(spark: SparkSession) -> None:
    told = {form: normal for normal, forms in FORMS.items() for form in forms} | dict.fromkeys(NOBODY)
    soup = st.lists(_PIECES, max_size=12).map("".join)
    texts = [*told, *(one.decode() for one in drawn((written_ipv6() | _IPV4 | soup).map(str.encode), 1500))]
    rows = spark.createDataFrame(list(enumerate(texts)), "number int, text string")
    found = rows.select("number", log_clients.normal_form(F.col("text")).alias("client"))
    read = found.select("number", "client", log_clients.is_address(F.col("client")).alias("place")).collect()
    clients = {texts[row["number"]]: row["client"] for row in read}
    expected = {one: None if one == "unix:" else oracle_clients.hop_of(one) for one in texts}
    assert clients == expected
    assert {one: clients[one] for one in told} == told
    places = {row["client"]: row["place"] for row in read if row["client"]}
    assert places == {one: oracle_clients.place_of(one) is not None for one in places}


@pytest.mark.parametrize("normal", FORMS)
def test_the_normal_form_of_an_address_is_the_one_of_the_standard_library(normal: str) -> None:
    assert {oracle_clients.hop_of(form) for form in FORMS[normal]} == {normal}
    assert not oracle_clients.place_of(normal) or str(ipaddress.ip_address(normal)) == normal
