"""Offline Observer: what a look finds stands while there are no newer rows: a look at nothing new does not hide it."""

from __future__ import annotations

from blogdata.patterns.quality.drift import Drift, Profile
from blogdata.patterns.quality.offline_observer import Observation
from quality.profiles import Looked


def _day(period: str, version: int, *drifts: Drift) -> Observation:
    profile = Profile(period=period, version=version, rows=60, columns={})
    return Observation(profile=profile, drifts=drifts, orphans={}, run_id=f"look-{version}")


def test_a_drift_stands_until_a_newer_period_without_one_is_looked_at() -> None:
    drift = Drift(period="2026-01-08", column="browser", test="psi", found=1.0, limit=0.2)
    ordinary, moved = _day("2026-01-07", 1), _day("2026-01-08", 2, drift)
    seen = [ordinary, moved]
    assert Looked(dataset="silver.visits_enriched", found=[moved], seen=seen).drifts == [drift]
    assert Looked(dataset="silver.visits_enriched", found=[], seen=seen).drifts == [drift], "nothing new was published"
    newer = _day("2026-01-09", 3)
    assert Looked(dataset="silver.visits_enriched", found=[newer], seen=[*seen, newer]).drifts == []
