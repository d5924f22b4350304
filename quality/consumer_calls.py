"""The jobs of other teams that the platform starts when their data is there; :mod:`analytics` does not know of this."""

from blogdata.patterns.data_flow.isolated_sequencer import Call
from blogdata.publish.partitions import Grain

CALLS = (
    Call(
        team="team:analytics",
        dataset="gold.page_stats",
        grain=Grain.DAY,
        period=Grain.WEEK,
        location="analytics",
        job="newsletter",
    ),
)
