"""A client is found behind the configured proxies, and behind no others."""

from __future__ import annotations

from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import oracle_clients
from assets.transforms import log_clients
from lineage.odd_lines import drawn

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
_IPV4 = st.sampled_from(["10.0.0.2", "10.255.0.1", "11.0.0.2", "192.0.2.7", "192.0.2.8", "0.0.0.0"])
_IPV6 = st.sampled_from(["2001:db8:1::9", "2001:DB8:1:0:0:0:0:9", "2001:db8:2::9", "::1", "::2", "::ffff:10.0.0.1"])
_WORDS = st.sampled_from(
    ["-", "", "unknown", "a.example", "for=_x", "unix:", "for=", "by=10.0.0.9", "for=10.0.0.7;proto=http"]
)


def test_the_client_behind_named_proxies_is_the_one_that_plain_python_finds(spark: SparkSession) -> None:
    words = _IPV4 | _IPV6 | _WORDS
    lists = st.tuples(_IPV4 | _IPV6 | _WORDS, st.lists(words, max_size=4).map(", ".join)).map("|".join)
    drawn_ones = [tuple(one.decode().split("|")) for one in drawn(lists.map(str.encode), 600)]
    chains = [(address, forwarded) for address, forwarded, _ in BEHIND] + drawn_ones
    rows = spark.createDataFrame([(at, *chain) for at, chain in enumerate(chains)], "at int, a string, f string")
    for proxies in (PROXIES, ("10.0.0.0/8",), ()):
        read = rows.select("at", log_clients.client(F.col("a"), F.col("f"), proxies).alias("client")).collect()
        found = {row["at"]: row["client"] for row in read}
        assert found == {at: oracle_clients.client_of(a, f or "-", proxies) for at, (a, f) in enumerate(chains)}
        told = dict(enumerate(expected for _, _, expected in BEHIND))
        assert proxies != PROXIES or {at: found[at] for at in told} == told
        assert proxies or all(found[at] == oracle_clients.client_of(a) for at, (a, _) in enumerate(chains))
