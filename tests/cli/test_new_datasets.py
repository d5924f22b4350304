"""Commands on datasets that an upgrade added and no run has computed yet, and invalid queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from datasketches import hll_sketch
from typer.testing import CliRunner

import published
from blogdata.cli.main import app
from blogdata.cli.output import NOTHING_PUBLISHED
from blogdata.errors import PlatformError
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.services import config
from quality.contracts.audience import LG_K

HOURS = ("2026-01-05T00", "2026-01-05T01")
SPAN = ("--from", "2026-01-05", "--to", "2026-01-06")
Said = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An empty deployment, whose commands run in this process."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    return Lake(root=str(config.load().lake))


@pytest.fixture
def said() -> Said:
    """Return the output of a command, or the next step of its error."""

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments)
        return str(done.exception) if isinstance(done.exception, PlatformError) else done.output

    return run


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("audience", *SPAN), "compute it: blogdata run --for gold.audience_hourly"),
        (("audience", *SPAN, "--by", "campaign"), "nothing has landed of landing.ads"),
        (("sql", "SELECT * FROM silver.ads"), "nothing has landed of landing.ads"),
        (("versions", "bronze.devices"), "nothing has landed of landing.devices"),
        (("ledger", "silver.ads"), "nothing can be computed of silver.ads yet: nothing has landed of landing.ads"),
        (("ledger", "silver.places"), "there is no silver.places yet; compute it: blogdata run --for silver.places"),
        (("versions", "silver.places"), "compute it: blogdata run --for silver.places"),
        (("sql", "SELECT * FROM silver.places"), "compute it: blogdata run --for silver.places"),
        (("sql", "SELECT * FROM silver.sessions_live"), "blogdata stream silver.sessions_live --once"),
        (("sql", "SELECT * FROM silver.sessions"), "compute it: blogdata run --for silver.sessions"),
    ],
)
def test_only_an_empty_deployment_gets_first_steps(
    lake: Lake, said: Said, command: tuple[str, ...], remedy: str
) -> None:
    assert NOTHING_PUBLISHED in said(*command)
    published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}})
    EventLog(lake).publications("bronze.visits")
    assert remedy in said(*command)
    assert NOTHING_PUBLISHED not in said(*command)


def test_hours_without_a_dimension_that_came_later_are_counted(lake: Lake, said: Said) -> None:
    sketch = hll_sketch(LG_K)
    sketch.update("u00000001")
    groups = [(HOURS[0], "all", "all"), (HOURS[1], "all", "all"), (HOURS[1], "country", "DE")]
    names = ("event_hour", "dimension", "value")
    content = pa.table(
        {
            **{name: [group[at] for group in groups] for at, name in enumerate(names)},
            "events": [3] * len(groups),
            "visitors": [sketch.serialize_compact()] * len(groups),
        }
    )
    rows = {HOURS[0]: 1, HOURS[1]: 2}
    published.publish(lake, "gold.audience_hourly", "event_hour", rows, content=content)
    assert "a version that kept" not in said("audience", *SPAN)
    for options in (("--by", "country"), ("--country", "DE"), ("--country", "FR")):
        assert "1 of the 24 hours were computed by a version that kept no country" in said("audience", *SPAN, *options)
    assert "no page view of these hours has country FR; what they have: --by country" in said(
        "audience", *SPAN, "--country", "FR"
    )


def test_names_that_are_almost_right_are_suggested(lake: Lake, said: Said) -> None:
    published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}})
    assert "did you mean gold.page_stats? Otherwise choose from: bronze." in said("run", "--for", "gold.page_stat")
    assert "did you mean bronze.visits? Otherwise tables: " in said("sql", "SELECT * FROM bronze.visit")
    assert "did you mean" not in said("ledger", "nothing")


def test_rows_that_a_dataset_has_beyond_its_rows_in_are_called_added(lake: Lake, said: Said) -> None:
    account = {"rows_in": 40, "reasons": {"without_ad": 13, "further_displays": -973}}
    content = pa.table({"event_hour": [HOURS[0]] * 1000, "row": range(1000)})
    published.publish(
        lake,
        "silver.visits_with_ads",
        "event_hour",
        {HOURS[0]: 1000},
        accounts={HOURS[0]: account},
        content=content,
    )
    assert " 40     1,000  973 further_displays added, 13 without_ad  adds up" in said("ledger")


def test_a_span_that_ends_before_it_begins_is_refused(lake: Lake, said: Said) -> None:
    """Regression: it printed "nothing to do", as if all partitions were up to date."""
    for command in ("run", "audience"):
        refused = said(command, "--from", "2026-01-07", "--to", "2026-01-05")
        assert "no hour is between 2026-01-07T00 and 2026-01-05T00" in refused
