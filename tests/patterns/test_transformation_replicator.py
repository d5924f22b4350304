import grp
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, schema

from blogdata.contract.column_types import parse_fields
from blogdata.contract.schema import NOBODY, Column
from blogdata.deliver.staging import remove, replicate
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.operate.config import CopySettings, Settings
from blogdata.patterns.security import transformation_replicator
from blogdata.patterns.security.fine_grained_accessor_for_tables import Shown
from blogdata.patterns.security.transformation_replicator import require_classified
from blogdata.privacy import clearing
from blogdata.privacy.file_search import is_searched_for, search
from blogdata.table.lake import Lake
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from quality.contracts import EVERY
from toy import CONTRACT

__all__ = ["deploy"]
GROUP = grp.getgrgid(os.getgid()).gr_name
SOME = ("bronze.visits", "silver.visits", "silver.users", "silver.identities", "silver.devices", "gold.audience_hourly")
COPIED = [*EVERY] if "WHOLE_MATRIX" in os.environ else [*SOME, "bronze.devices"]
"""Tables of each kind: as received, with tokens, encrypted, without persons, with fewer rows, of several members; make
laws copies all."""


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    return deploy.published("staging", three_hours)


@pytest.fixture(scope="module")
def staging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("staging") / "lake"


def protected(made: Deployment) -> set[str]:
    """Return all texts of columns that identify a person directly or by a pseudonym."""
    values: set[str] = set()
    for name, contract in EVERY.items():
        columns = [column.name for column in contract.columns if column.singles_out and column.type == "STRING"]
        if made.lake.version(name) is not None:
            values |= {value for column in columns for value in made.rows(name, column) if value}
    # Sessions show the page that a visitor came from, without its query: that one is for everybody.
    public = set(made.rows("gold.sessions_daily", "referral"))
    return {value for value in values - public if is_searched_for(value)}


def settings_of(made: Deployment, staging: Path) -> Settings:
    return replace(made.settings, staging=CopySettings(folder=staging, group=GROUP))


def replicated(made: Deployment, staging: Path, *datasets: str) -> dict[str, bool]:
    """Copy tables as the job does; return whether each was new."""
    return replicate(settings_of(made, staging), datasets, made.session)


@pytest.mark.matrix(1)
def test_staging_has_every_row_and_no_value_of_a_person_in_any_file(deployment: Deployment, staging: Path) -> None:
    """Data files, their statistics, logs and checkpoints are searched as an erasure searches them."""
    done = replicated(deployment, staging, *COPIED)
    published = deployment.lake.versions(COPIED)
    assert done.keys() == published.keys()
    copy, production = Lake(root=str(staging)), deployment.lake
    differing = {
        name: version
        for name, version in published.items()
        if copy.row_counts(name, None) != production.row_counts(name, None, version)
    }
    assert differing.keys() == {"gold.audience_hourly"}, "its rows of few visitors would tell their country"
    values = protected(deployment)
    assert len(values) > 100
    assert len(search(deployment.settings.lake / "silver", values).traces) > 3
    searched = search(staging, values)
    assert (searched.traces, searched.unsearched) == ({}, {})
    assert searched.files > 3 * len(published)


def test_rows_still_join_and_all_other_values_are_as_they_were(deployment: Deployment, staging: Path) -> None:
    copy, names = Lake(root=str(staging)), ("visit_id", "user_id", "event_hour", "page", "keep_private")
    stored, copied = (lake.columns("silver.visits", names).to_pydict() for lake in (deployment.lake, copy))
    for name in ("event_hour", "page", "keep_private"):
        assert sorted(stored[name]) == sorted(copied[name])
    for name in ("visit_id", "user_id"):
        assert sorted(map(stored[name].count, set(stored[name]))) == sorted(map(copied[name].count, set(copied[name])))

    def known(lake: Lake) -> int:
        users = set(lake.columns("silver.users", ("user_id",)).to_pydict()["user_id"])
        return sum(user in users for user in lake.columns("silver.visits", ("user_id",)).to_pydict()["user_id"])

    assert known(copy) == known(deployment.lake) > 0
    sight = transformation_replicator.sight_of(EVERY["silver.visits"])
    assert sight is not None
    assert (sight.columns["connected_since"], sight.columns["login"]) == (Shown.BY_DAY, Shown.HASHED)
    assert "raw" not in {field.name for field in DeltaTable(copy.path("bronze.visits")).schema().fields}


def test_what_has_changed_is_copied(deployment: Deployment, staging: Path) -> None:
    copy, count = Lake(root=str(staging)), f"SELECT count(*) FROM delta.`{staging}/bronze/visits`"
    files = {file: file.stat().st_mtime_ns for file in staging.rglob("*") if file.is_file()}
    assert {*replicated(deployment, staging, *COPIED).values()} == {False}
    assert files == {file: file.stat().st_mtime_ns for file in staging.rglob("*") if file.is_file()}
    before = copy.version("silver.devices")
    with deployment.session() as spark:
        ((rows,),) = spark.sql(count).collect()
        deployment.land(THREE_HOURS[-1], [event("02:40", "/in-staging")], name="in-staging.json")
        assert deployment.run(for_=["bronze.visits"]).problems == []
        done = replicated(deployment, staging, "bronze.visits", "silver.devices")
        assert done == {"bronze.visits": True, "silver.devices": False}
        assert spark.sql(count).collect() == [(rows + 1,)]
    assert copy.version("silver.devices") == before
    assert search(staging, protected(deployment)).traces == {}


def test_copies_go_when_somebody_is_forgotten(deployment: Deployment, staging: Path) -> None:
    settings = settings_of(deployment, staging)
    looked = clearing.look(settings, {"in-staging"})
    assert any(path.startswith("staging/.copies/bronze.visits-") for path in looked.traces)
    remove(settings)
    copy = Lake(root=str(staging))
    assert {copy.version(name) for name in EVERY} == {None}
    assert replicated(deployment, staging, "silver.devices")["silver.devices"]
    assert copy.version("silver.devices") == 0
    remove(settings)
    assert [file for file in staging.rglob("*") if file.is_file()] == []


def test_a_column_that_nobody_has_classified_stops_the_copy_and_is_named(deployment: Deployment, staging: Path) -> None:
    owner = schema.StructType([schema.Field("name", schema.PrimitiveType("string"))])
    DeltaTable(deployment.lake.path("silver.devices")).alter.add_columns([schema.Field("owner", owner)])
    with pytest.raises(PlatformError, match="nobody has said whom these columns identify: owner"):
        replicated(deployment, staging)
    assert [file for file in staging.rglob("*") if file.is_file()] == [], "nothing else is copied, either"


def test_a_field_within_a_column_has_to_be_declared_too() -> None:
    kind = "STRUCT<at: TIMESTAMP, by: ARRAY<STRUCT<browser: STRING>>>"
    seen = Column(name="seen", type=kind, description="When")
    contract = replace(CONTRACT, columns=(seen,))
    with pytest.raises(PlatformError, match=r"(?m)these columns identify: seen$"):
        require_classified(contract, contract.fields)
    declared = replace(contract, columns=(replace(seen, subject=NOBODY),))
    require_classified(declared, declared.fields)
    stored = parse_fields("seen STRUCT<at: TIMESTAMP, by: ARRAY<STRUCT<browser: STRING, phone: STRING>>>, email STRING")
    with pytest.raises(PlatformError, match=r"these columns identify: seen\.by\.phone, email"):
        require_classified(declared, stored)


@pytest.mark.parametrize("place", ["lake/staging", ".", "home", "used"])
def test_staging_goes_to_a_new_folder_outside_of_the_deployment(tmp_path: Path, place: str) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    home, landing, lake = (tmp_path / name for name in ("home", "landing", "lake"))
    known = Settings(home=home, landing=landing, lake=lake, jars=home)
    named = replace(known, staging=CopySettings(folder=(tmp_path / place).resolve(), group=GROUP))
    with pytest.raises(ConfigurationError, match="the folder for staging"):
        replicate(named, [], nullcontext)  # type: ignore[arg-type]
