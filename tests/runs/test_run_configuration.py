"""A run's configuration chooses what runs; paths and the user it runs as come from the home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

import definitions
from analytics.definitions import defs as analytics_definitions
from blogdata.operate import config

TEXTS = {
    "loggers.console.config.log_level": "Dagster's logger: one of Python's levels",
    "loggers.console.config.name": "Dagster's logger: its name in lines of the log",
    "ops.do_replicate.config.datasets.[]": "names of datasets",
    "ops.do_rotate.config.key": "one of two words",
    "ops.do_share.config.dataset": "a name, refused if no contract has it",
    "ops.do_replay.config.dataset": "a name, refused if no contract has it",
    "ops.do_replay.config.partitions": "keys of that dataset, refused otherwise",
    "resources.request.config.again.{}.[]": "keys of partitions",
    "resources.request.config.datasets.[]": "names of datasets",
    "resources.request.config.lane": "one of three words",
    "resources.request.config.scope": "one of three words",
    "resources.request.config.span": "two hours",
}
"""The texts that a run may be given, each with what it is."""
PARTNER = "https://partner.example.com/events"


@pytest.fixture(scope="module")
def locations(tmp_path_factory: pytest.TempPathFactory) -> list[dg.Definitions]:
    settings = config.load({"BLOGDATA_HOME": str(tmp_path_factory.mktemp("home")), "BLOGDATA_PARTNER": PARTNER})
    return [definitions.build(settings), analytics_definitions()]


def texts(kind: Any, *path: str) -> Iterator[tuple[str, str]]:
    """List the config fields that take a text or any value, with their kind."""
    fields = getattr(kind, "fields", None)
    if fields is not None:
        for name, field in fields.items():
            yield from texts(field.config_type, *path, name)
    elif kind.kind.name in ("ARRAY", "NONEABLE"):
        yield from texts(kind.inner_type, *path, *(["[]"] if kind.kind.name == "ARRAY" else []))
    elif kind.kind.name == "MAP":
        yield from texts(kind.inner_type, *path, "{}")
    elif kind.kind.name == "SCALAR_UNION":
        # A value, or the name of the environment variable that holds it.
        yield ".".join(path), "a variable"
    elif kind.kind.name == "ANY" or kind.given_name == "String":
        yield ".".join(path), kind.kind.name


def test_no_run_configuration_sets_a_path(locations: list[dg.Definitions]) -> None:
    found = {
        place: kind
        for location in locations
        for job in location.get_repository_def().get_all_jobs()
        for place, kind in texts(location.resolve_job_def(job.name).run_config_schema.config_type)
    }
    assert not [place for place, kind in found.items() if kind == "a variable"]
    assert {place for place, kind in found.items() if kind != "ANY"} == {*TEXTS}
    # Dagster accepts any value where an op has no config schema.
    others = {place.split(".")[0] for place, kind in found.items() if kind == "ANY"}
    assert others <= {"ops", "execution", "resources"}
