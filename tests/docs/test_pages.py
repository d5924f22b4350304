"""Commands, options, targets, settings and links on the pages exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from blogdata.cli.main import app
from blogdata.contract.privacy import CONSUMERS
from blogdata.contract.schema import WHOLE
from blogdata.deliver.query import TABLE, VERSIONS
from blogdata.operate import config, secrets
from blogdata.patterns.data_value.metadata_decorator import PUBLICATIONS
from blogdata.patterns.error_management.checkpointer import STREAM_OFFSETS
from blogdata.patterns.security.secrets_pointer import Secret
from blogdata.patterns.storage.dataset_materializer import VIEW
from blogdata.planning import clock
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.table import refused
from blogdata.watch import alerting
from blogdata.watch.metrics import PREFIX, registry
from docs.pages import PAGES, ROOT, blocks, commands, files, parse, quoted, text
from published import deployment
from quality.contracts import EVERY, GRAPH
from sensors import instigators

COMMANDS = sorted({line for page in PAGES for line in commands(page)})
COMMAND_LINE = "docs/reference/command-line.md"
LINK = re.compile(r"\]\(([^)#\s]+)?(#[^)\s]+)?\)")


def test_the_page_of_what_starts_by_itself_names_every_sensor_and_schedule() -> None:
    page = text("docs/how-to/run-by-itself.md")
    sensors, schedules = instigators(automatic=False)
    names = [*(sensor.name for sensor in sensors), *(schedule.name for schedule in schedules)]
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("blogdata ")])
def test_commands_of_the_pages_parse(line: str) -> None:
    parse(shlex.split(line)[1:])


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("blogdata sql")])
def test_a_query_of_a_page_names_existing_tables(line: str) -> None:
    query = shlex.split(line)[2]
    names = {match.group(0) for match in TABLE.finditer(query)}
    assert names
    whole = {name + WHOLE for name, contract in EVERY.items() if contract.wide}
    materialized = {name + VIEW for name, contract in EVERY.items() if contract.view}
    views = {PUBLICATIONS, VERSIONS, *whole, *materialized, *(name + CONSUMERS for name in EVERY)}
    kept = {name for name in names if name.startswith(f"{refused.LAYER}.")}
    assert names - kept <= {*EVERY, *views, "ops.events", STREAM_OFFSETS}
    assert all(any(name.startswith(refused.name_of(dataset, ())) for dataset in EVERY) for name in kept)


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("make ")])
def test_a_make_target_of_the_pages_exists(line: str) -> None:
    makefile = text("Makefile")
    words = shlex.split(line)[1:]
    assert re.search(rf"^{re.escape(words[0])}:", makefile, re.MULTILINE), f"no target {words[0]}"
    for variable in (word.split("=")[0] for word in words[1:]):
        assert re.search(rf"^{re.escape(variable)} \?=", makefile, re.MULTILINE), f"no variable {variable}"


def test_every_command_of_the_command_line_is_shown() -> None:
    words = {word for line in COMMANDS if line.startswith("blogdata ") for word in shlex.split(line)[1:3]}
    words |= set(re.findall(r"`blogdata (\w+)", "".join(text(page) for page in PAGES if page != COMMAND_LINE)))
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    assert set(root.commands) <= words


def test_the_configuration_table_has_exactly_the_settings() -> None:
    page = text("docs/reference/configuration.md")
    table = page[page.index("| environment |") : page.index("```toml")]
    documented = set(re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE))
    places = set(config.places(config.Settings))
    variables = {place[-1] for place in places if re.match(r"BLOGDATA_.*[A-Z]$|SPARK_", place[-1])}
    assert documented == variables
    for section, key, *below in (place for place in places if len(place) > 1 and place[-1].islower()):
        if section != "alerts":
            assert f"`[{section}] {key}`" in table or (f"`[{section}.{key}]`" in table and (below or key == "conf"))


def test_the_channels_of_the_page_are_accepted(tmp_path: Path) -> None:
    (example,) = blocks("docs/how-to/get-alerts.md", "toml")
    (tmp_path / "blogdata.toml").write_text(example, encoding="utf-8")
    settings = config.load({"BLOGDATA_HOME": str(tmp_path)})
    assert settings.alerting.repeat_after == config.AlertingSettings().repeat_after
    for channel in settings.alerts:
        secrets.pointer(settings, channel.secret or "none").add(Secret("xoxb-123456789012-abcdefghijkl"), after=0)
        alerting.check(settings, channel)


def test_the_metrics_table_has_exactly_the_metrics(tmp_path: Path) -> None:
    page = text("docs/how-to/scrape-metrics.md")
    documented = set(re.findall(r"`((?:dataset|collected|findings)\w*)`", page[page.index("## The metrics") :]))
    home = deployment(tmp_path / "home")
    look = Snapshot(home.landing_zone, home.events)
    found = registry(Observed(graph=GRAPH, look=look, now=clock.now()))
    assert documented == {family.name.removeprefix(PREFIX) for family in found.collect()}


def test_the_settings_of_the_page_are_accepted(tmp_path: Path) -> None:
    (example,) = blocks("docs/reference/configuration.md", "toml")
    for key, value in (("spark.driver.bindAddress", "0.0.0.0"), ("spark.authenticate", "true")):
        (of_a_cluster,) = (one for one in blocks("docs/how-to/run-on-a-cluster.md", "toml") if f'"{key}"' in one)
        (tmp_path / "blogdata.toml").write_text(of_a_cluster, encoding="utf-8")
        assert dict(config.load({"BLOGDATA_HOME": str(tmp_path)}).spark.conf)[key] == value
    (tmp_path / "blogdata.toml").write_text(example, encoding="utf-8")
    settings = config.load({"BLOGDATA_HOME": str(tmp_path)})
    assert settings.landing == Path("/data/landing")
    assert (settings.spark.heap, settings.spark.conf) == ("4g", (("spark.sql.shuffle.partitions", "16"),))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    dead = []
    for target, anchor in LINK.findall(text(page)):
        if target.startswith(("http://", "https://")):
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        if not file.exists():
            dead.append(target)
        elif anchor and anchor[1:] not in _anchors(file):
            dead.append(target + anchor)
    assert not dead


@pytest.mark.parametrize("page", PAGES)
def test_files_named_in_a_page_exist(page: str) -> None:
    named = re.findall(r"`((?:platform|assets|quality|sensors|tests|blogdata)/[\w/.]+\.\w+)`", text(page))
    planned = {*files("docs/how-to/add-a-pattern.md"), *files("docs/how-to/add-a-dataset.md")}
    assert not [name for name in named if not (ROOT / name).exists() and name not in planned]


def test_the_readme_is_short_and_quotes_the_code() -> None:
    assert len(text("README.md").splitlines()) <= 130
    code = quoted("README.md")
    assert code
    assert [file for file, block in code.items() if block not in (ROOT / file).read_text(encoding="utf-8")] == []
    assert len({text(page).split("```mermaid\n")[1].split("```")[0] for page in ("README.md", "docs/index.md")}) == 1


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
