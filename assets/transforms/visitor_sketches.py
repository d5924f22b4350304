"""Audience: page views and a sketch of the visitors, by one dimension at a time.

Every page view is counted once in each dimension. Combinations of dimensions would have about as many groups as there
are page views, and a sketch of few visitors is larger than their ids.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.transforms.cubes import named
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, LG_K

BY = ("event_hour", "dimension", "value")
MEASURES = (
    Measure(name="events"),
    Measure(name="visitors", how=How.SKETCH, column="user_id", lg_k=LG_K),
)


def dimensions() -> Column:
    """Return a generator of the columns `dimension` and `value`: a row for each dimension of a visit event."""
    return F.inline(F.array(*[_of(name) for name in AUDIENCE_DIMENSIONS]))


def _of(dimension: str) -> Column:
    value = F.lit(ALL) if dimension == ALL else named(F.col(dimension))
    return F.struct(F.lit(dimension).alias("dimension"), value.alias("value"))
