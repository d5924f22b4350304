"""Pseudo-Anonymizer: nothing that the partner has is an id that a table of the lake has; without Spark."""

from __future__ import annotations

from deliver.test_feeds import HOURS, Blog, blog, visit
from patterns.partner_feed import received

__all__ = ["blog"]


def test_no_id_that_the_partner_has_is_in_a_table(blog: Blog) -> None:
    for hour in HOURS:
        blog.publish(hour, [visit(hour, number, f"user-{number % 7}", f"/{number}") for number in range(40)])
    assert blog.run().success
    table = blog.access.lake.columns("silver.visits", ["visit_id", "user_id"]).to_pydict()
    ids = {value for column in table.values() for value in column}
    told = {value for one in received(blog.file) for value in (one["key"], one["payload"]["visit_id"])}
    assert len(told) >= len(ids) == 7
    assert not ids & told
