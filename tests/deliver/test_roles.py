"""Who queries as a role sees its columns and rows, whatever the statement: Fine-Grained Accessor for Tables."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import Row

from blogdata.contract.column_types import parse
from blogdata.contract.contract import Contract
from blogdata.contract.privacy import visible
from blogdata.contract.schema import Column, How
from blogdata.deliver.query import SECRET, Query, RoleSight
from blogdata.errors import ConfigurationError
from blogdata.operate import secrets
from blogdata.operate.config import Settings
from blogdata.patterns.security.fine_grained_accessor_for_tables import (
    LEAST_VISITORS,
    MASK,
    Role,
    Shown,
    Sight,
    restricted,
    sight_of,
)
from blogdata.table.lake import Lake
from lineage.conftest import Deploy, deploy, said
from lineage.deployment import Deployment
from quality.contracts import EVERY

__all__ = ["deploy", "said"]
Ask = Callable[[str, Role], list[Row]]
MOMENT = datetime(2026, 1, 5, 10, 5, 7, tzinfo=timezone.utc)
DAY = MOMENT.replace(hour=0, minute=0, second=0, tzinfo=None)
TABLES = (
    "silver.visits",
    "silver.users",
    "silver.identities",
    "silver.sessions_pending",
    "gold.visits_weekly",
    "gold.page_stats",
)
SHARED, PRIVATE = "shared", "private"
"""Who may be shared, and who asked not to be: their values contain this word."""
OTHERS = [role for role in Role if role is not Role.OWNER]

ATTACKS = """
SELECT user_id FROM silver.visits;
SELECT x.ip FROM (SELECT * FROM silver.visits) AS x;
SELECT (SELECT max(login) FROM silver.visits);
SELECT page FROM silver.visits WHERE ip LIKE '%';
SELECT count(*) FROM silver.visits GROUP BY login HAVING max(login) > '';
SELECT to_json(struct(*)) FROM silver.visits;
SELECT raise_error(to_json(struct(*))) FROM silver.visits;
SELECT CAST(to_json(struct(*)) AS INT) FROM silver.visits;
SELECT page FROM gold.page_stats WHERE CAST(page AS INT) > 0;
SELECT raise_error(page) FROM gold.page_stats WHERE users < 5;
SELECT page FROM gold.visits_weekly WHERE if(keep_private, raise_error(page), true);
SELECT approx_top_k(page) FROM gold.visits_weekly;
SELECT a.page FROM gold.page_stats a RIGHT JOIN gold.page_stats b ON a.page = b.page AND b.users < 5;
SELECT login FROM silver.identities;
SELECT email FROM silver.users_whole;
SELECT * FROM silver.users_current_public;
SELECT * FROM gold.returning_visitors_view;
SELECT * FROM silver.sessions_pending;
SELECT * FROM refused.visits;
SELECT * FROM ops.events;
SELECT * FROM silver__visits;
SELECT blogdata_masked('a');
SELECT blogdata_masked(page) FROM silver.visits;
SELECT * FROM delta.`{lake}/silver/visits`;
SELECT * FROM text.`{home}/secrets/masks`;
DESCRIBE HISTORY delta.`{lake}/silver/visits`;
DESCRIBE TABLE EXTENDED silver.visits;
EXPLAIN EXTENDED SELECT * FROM silver.visits;
SELECT input_file_name(), page FROM gold.page_stats;
SHOW CREATE TABLE silver.visits;
SHOW COLUMNS IN silver.visits
"""


def value(column: Column, who: str) -> Any:
    """Return the value of a column for a person: one that names the column and the person, if it is a text."""
    kind = str(parse(column.type))
    texts = {"string": f"{who}-{column.name}", "binary": f"{who}-{column.name}".encode(), "timestamp": MOMENT}
    if column.name in ("event_hour", "event_date", "event_week"):
        return "2026-01-05"
    if column.name == "keep_private":
        return who == PRIVATE
    if column.name == "users":
        return LEAST_VISITORS if who == SHARED else LEAST_VISITORS - 1
    return texts.get(kind, 1 if kind in ("bigint", "int") else 0.5 if kind == "double" else None)


def stored(contract: Contract) -> pa.Table:
    """Return a row of each person; columns of other types are left out."""
    columns = [column for column in contract.columns if value(column, SHARED) is not None]
    return pa.Table.from_pylist([{column.name: value(column, who) for column in columns} for who in (SHARED, PRIVATE)])


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Tables with a row of somebody who may be shared, and of somebody who may not."""
    found = deploy("roles")
    for name in TABLES:
        write_deltalake(found.lake.path(name), stored(EVERY[name]))
    return found


@pytest.fixture
def ask(deployment: Deployment) -> Ask:
    """Return the rows of a query that is asked as a role, as `blogdata sql --as` does."""

    def rows(query: str, role: Role) -> list[Row]:
        sight = RoleSight(role=role, settings=deployment.settings)
        with deployment.session() as spark:
            return list(Query.of(deployment.lake, query, None, sight).frame(spark).collect())

    return rows


def masked(deployment: Deployment, text: str) -> str:
    """Compute a mask in plain Python."""
    secret = secrets.read(deployment.settings, SECRET).reveal().encode()
    return hmac.digest(hmac.digest(secret, SECRET.encode(), "sha256"), text.encode(), "sha256").hex()[:32]


def expected(deployment: Deployment, contract: Contract, role: Role) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Work out, from the declared rights alone, the columns that a role sees and the rows."""
    sight = sight_of(contract, role)
    assert sight is not None
    shapes: Mapping[Shown, Callable[[Any], Any]] = {
        Shown.AS_IT_IS: lambda cell: cell.replace(tzinfo=None) if cell == MOMENT else cell,
        Shown.HASHED: lambda cell: masked(deployment, cell) if isinstance(cell, str) else None,
        Shown.MASKED: lambda cell: cell and "***",
        Shown.BY_DAY: lambda cell: DAY if cell == MOMENT else cell,
        Shown.HIDDEN: lambda cell: None,
    }
    table = stored(contract)
    names = [name for name in sight.columns if name in table.column_names]
    seen = (SHARED,) if sight.rows else (SHARED, PRIVATE)
    declared = {column.name: column for column in contract.columns}
    return names, [
        tuple(shapes[_shown(sight, name, who)](value(declared[name], who)) for name in names) for who in seen
    ]


def _shown(sight: Sight, name: str, who: str) -> Shown:
    shown = sight.columns.get(name, Shown.HIDDEN)
    return sight.private.get(name, shown) if who == PRIVATE else shown


@pytest.mark.parametrize("role", OTHERS)
@pytest.mark.parametrize("dataset", TABLES)
def test_a_role_sees_its_columns_and_rows(deployment: Deployment, ask: Ask, dataset: str, role: Role) -> None:
    contract = EVERY[dataset]
    if sight_of(contract, role) is None:
        with pytest.raises(ConfigurationError, match=f"the role {role.value} does not see {dataset}"):
            ask(f"SELECT * FROM {dataset}", role)
        return
    names, rows = expected(deployment, contract, role)
    found = ask(f"SELECT * FROM {dataset}", role)
    assert {tuple(row.__fields__) for row in found} == {tuple(names)}
    assert sorted(repr(tuple(row)) for row in found) == sorted(map(repr, rows))


def test_masked_rows_still_join(ask: Ask) -> None:
    """The key of both tables is one user's id, which the engineer never sees."""
    joined = "SELECT count(*) FROM silver.visits JOIN silver.users USING (user_id)"
    assert ask(joined, Role.ENGINEER) == [(2,)]


def secrets_of(role: Role) -> list[str]:
    """Return what a role must never find: texts of columns that it sees masked or not at all, and of hidden rows."""
    sights = {name: sight_of(EVERY[name], role) for name in TABLES}
    return [
        f"{who}-{column.name}"
        for name, sight in sights.items()
        for who in (SHARED, PRIVATE)
        for column in EVERY[name].columns
        if isinstance(value(column, who), str | bytes) and value(column, who) != "2026-01-05"
        if sight is None or (sight.rows and who == PRIVATE) or _shown(sight, column.name, who) is not Shown.AS_IT_IS
    ]


@pytest.mark.parametrize("role", [Role.ANALYST, Role.PARTNER])
def test_no_way_round_the_views_is_open(deployment: Deployment, ask: Ask, role: Role) -> None:
    places = {"lake": deployment.settings.lake, "home": deployment.settings.home}
    # What a role sees in one table, or the beginning of it, is hidden in no other.
    seen = [
        f"{who}-{name}"
        for table in TABLES
        if (sight := sight_of(EVERY[table], role)) is not None
        for who in ((SHARED,) if sight.rows else (SHARED, PRIVATE))
        for name in sight.columns
        if _shown(sight, name, who) in (Shown.AS_IT_IS, Shown.BY_DAY)
    ]
    hidden = [text for text in secrets_of(role) if not any(value.startswith(text) for value in seen)]
    assert len(hidden) > 10
    outcomes = []
    for attack in ATTACKS.strip().split(";\n"):
        try:
            answer, outcome = repr(ask(attack.format(**places), role)), "answered"
        except ConfigurationError as error:
            # What it names is what was asked for.
            answer, outcome = str(error).replace(str(places["home"]), ""), "refused"
        except PySparkException as error:
            answer, outcome = str(error.getMessage()).replace(str(places["home"]), ""), str(error.getCondition())
        assert [text for text in hidden if text in answer] == [], (attack, answer)
        outcomes.append(outcome)
    assert outcomes.count("refused") > 10, outcomes
    assert "answered" in outcomes


def test_a_key_is_in_no_plan(deployment: Deployment) -> None:
    sight = RoleSight(role=Role.ENGINEER, settings=deployment.settings)
    with deployment.session() as spark:
        asked = Query.of(deployment.lake, "SELECT user_id FROM silver.visits", None, sight)
        frame: Any = asked.frame(spark)
        plan = frame._explain_string(extended=True)
    assert MASK in plan
    secret = secrets.read(deployment.settings, SECRET).reveal()
    key = hmac.new(secret.encode(), SECRET.encode(), hashlib.sha256).digest()
    assert secret not in plan
    assert key.hex() not in plan.lower()
    # The key's bytes are not in what the client sends, either: it has the path of the file alone.
    assert secret not in str(frame._plan.to_proto(spark.client))


def test_a_table_older_than_who_asked_shows_no_exact_time(spark: Any) -> None:
    late = EVERY["silver.late_visits"]
    older = spark.createDataFrame([("2026-01-05T10", MOMENT, 60.0)], "event_hour string, event_time timestamp, "
        "lateness_seconds double")  # fmt: skip
    (row,) = restricted(older, late, Role.ANALYST).collect()
    assert (row.event_time, row.lateness_seconds) == (DAY, None)


@pytest.mark.parametrize(
    ("query", "role", "moment", "error"),
    [
        ("gold.page_stats", Role.PARTNER, MOMENT, "the role partner sees the newest state only"),
        ("gold.visits_weekly", Role.ANALYST, MOMENT, "the role analyst sees the newest state only"),
        # These get as far as the lake, which has no tables.
        ("gold.page_stats", Role.PARTNER, None, "there is no"),
        ("gold.page_stats", Role.ANALYST, MOMENT, "there is no"),
        ("gold.visits_weekly", Role.ENGINEER, MOMENT, "there is no"),
    ],
)
def test_only_who_sees_all_rows_sees_an_earlier_state(
    settings: Settings, tmp_path: Path, query: str, role: Role, moment: datetime | None, error: str
) -> None:
    with pytest.raises(ConfigurationError, match=error):
        Query.of(Lake(root=str(tmp_path)), f"SELECT page FROM {query}", moment, RoleSight(role=role, settings=settings))


def persons(contract: Contract, how: Sequence[How]) -> set[str]:
    return {column.name for column in contract.columns if column.subject is not None and column.subject.how in how}


@pytest.mark.parametrize("contract", EVERY.values(), ids=lambda contract: contract.dataset)
def test_the_rights_hold_for_every_dataset(contract: Contract) -> None:
    sights = {role: sight_of(contract, role) for role in Role}
    seen = {role: dict(sight.columns) if sight else {} for role, sight in sights.items()}
    assert seen[Role.OWNER] == dict.fromkeys([column.name for column in contract.columns], Shown.AS_IT_IS)
    direct = persons(contract, [How.DIRECT])
    masked_ones = {column.name for column in contract.columns if column.masked}
    assert {seen[Role.ENGINEER][name] for name in direct - masked_ones} <= {Shown.HASHED}
    assert {seen[Role.ENGINEER][name] for name in masked_ones} <= {Shown.MASKED}
    shown = set() if contract.layer == "bronze" else set(visible(contract))
    # What does not say who asked not to be shared shows no pseudonym at all.
    assert shown - set(seen[Role.ANALYST]) <= persons(contract, [How.PSEUDONYM, How.QUASI_IDENTIFIER])
    assert set(seen[Role.ANALYST]) <= shown
    analyst = sights[Role.ANALYST]
    if analyst is not None:
        alike = {name for name, how in analyst.columns.items() if analyst.private.get(name, how) is how}
        # Of the others, exact times lead to rows of who asked not to be shared: these are of devices and places.
        times = {column.name for column in contract.columns if str(parse(column.type)) == "timestamp"}
        exact = {name for name in alike & times if analyst.columns[name] is Shown.AS_IT_IS}
        assert exact <= {"valid_from", "valid_to", "valid_until"}
        pseudonyms = persons(contract, [How.PSEUDONYM]) & set(analyst.columns)
        assert not alike & pseudonyms
        assert not pseudonyms or not alike & persons(contract, [How.QUASI_IDENTIFIER])
    assert not direct & {*seen[Role.ANALYST], *seen[Role.PARTNER]}
    assert not persons(contract, list(How)) & set(seen[Role.PARTNER])
    assert set(seen[Role.PARTNER]) <= set(seen[Role.ANALYST]) or not seen[Role.PARTNER]
    partner = sights[Role.PARTNER]
    assert partner is None or partner.rows or contract.anonymous
