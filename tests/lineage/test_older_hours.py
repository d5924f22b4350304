"""Hours that an older release has published are read again; what is rejected today is left out by name and number."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from pyspark import cloudpickle

from assets.transforms.visit_lines import ReceivedLines
from blogdata.landing.records import Values
from blogdata.publish.partitions import Grain, start_of
from lineage.conftest import Deploy
from lineage.deployment import event
from quality.contracts.visits import FOUND, READ

HOUR = "2026-01-05T10"
DEEP = event("10:05", "/deep")[:-1] + b',"x":' + b"[" * 600 + b"]" * 600 + b"}"
LOG = [
    b"#Fields: date time cs-method cs-uri-stem c-ip sc-status cs(User-Agent)",
    b"2026-01-05 10:06:00 GET /b 192.0.2.7 200 Mozilla/5.0+(X11;+Linux+x86_64;+rv:120.0)+Gecko/20100101+Firefox/120.0",
    b"prose",
]


class Older(ReceivedLines):
    """Takes lines in as if an older release could read them all, and keeps nothing of what is found in them."""

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        read, found = super().of_file(file, partition), {column.name for column in FOUND}

        def of_line(offset: int, raw: bytes) -> Values:
            row = dict(zip(self.names, read(offset, raw), strict=True))
            if row["reasons"]:
                row |= {"event_time": start_of(partition, Grain.HOUR), "event_hour": partition, "reasons": []}
            return tuple(None if name in found else row[name] for name in self.names)

        return of_line


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@pytest.mark.campaign
def test_lines_that_an_older_release_took_in_are_rows_or_accounted_for(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy("older")
    deployment.land(HOUR, [event("10:05", "/a"), DEEP])
    deployment.land(HOUR, LOG, name="access.log")
    with monkeypatch.context() as patched:
        patched.setattr("assets.bronze.visits.ReceivedLines", Older)
        assert deployment.run(for_=["bronze.visits"]).problems == []
    (bronze,) = deployment.published("bronze.visits").values()
    assert (bronze.measures["visits"], bronze.measures["dead"], bronze.measures[READ]) == (4, 0, 0)
    assert deployment.run(for_=["silver.visits"]).problems == []
    assert sorted(deployment.rows("silver.visits", "page", "browser")) == [("/a", "Firefox"), ("/b", "Firefox")]
    (silver,) = deployment.published("silver.visits").values()
    assert (silver.rows_in, silver.reasons["dead_lettered"], silver.missing) == (5, 2, 0)
    assert deployment.run(select=["gold.requests_daily"], hours=(HOUR[:10], HOUR[:10])).problems == []
    assert sorted(deployment.rows("gold.requests_daily", "status", "requests")) == [("200", 1), ("other", 1)]
