"""What an erasure does not reach is named before it begins."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from blogdata.landing.landed_persons import Identifiers
from blogdata.operate.config import LogSettings
from blogdata.privacy import erasure_plan
from blogdata.privacy.persons import Match
from blogdata.table.lake import Lake
from published import planner, publish
from unit.conftest import lake
from unit.test_expired import ONE_DAY, H, expired, hours

__all__ = ["lake"]


def test_rows_in_partitions_whose_inputs_have_expired_are_named(lake: Lake) -> None:
    counts = dict.fromkeys(H[:2], 2)
    version = hours(lake, "silver.visits", "event_hour", counts, inputs={"bronze.visits": 0})
    content = pa.table({"event_hour": [key for key in counts for _ in "ab"], "user_id": ["a", "b"] * 2})
    inputs = {"silver.visits": version}
    publish(lake, "silver.visits_enriched", "event_hour", counts, inputs=inputs, content=content)
    nothing = content.slice(0, 0)
    publish(lake, "silver.visit_conflicts", "event_hour", dict.fromkeys(counts, 0), inputs=inputs, content=nothing)

    def left(user: str) -> Mapping[str, str]:
        persons = Identifiers(user_ids=frozenset({user}))
        found = Match(persons=persons, shared=frozenset(), unknown=frozenset())
        return erasure_plan.look(planner(lake, ONE_DAY), [], found, logs=LogSettings()).left

    assert left("a") == {}
    assert set(expired(lake, 1)) == {"silver.visits"}
    assert left("a") == {"silver.visits_enriched": f"{H[0]} cannot be computed again, since an input has expired"}
    assert left("nobody") == {}
