"""`blogdata sql` reads the lake's tables and nothing else, whatever the statement."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException

from blogdata.deliver.query import TABLE, require_read_only, view
from blogdata.errors import ConfigurationError
from lineage.command_line import Said
from lineage.conftest import Deploy, deploy, said
from lineage.deployment import Deployment

__all__ = ["deploy", "said"]
SECRET = "the-secret-that-no-query-may-show"
VIEWS = ("silver.visits", "silver.visits_public")
Judge = Callable[[str], str]

ACCEPTED = """
SELECT 1;
-- a comment
SELECT /* another: gold.nothing */ page FROM silver.visits;
SELECT 'gold.nothing', "silver.nothing" FROM silver.visits;
WITH a AS (SELECT page, count(*) AS n FROM silver.visits GROUP BY ALL) SELECT * FROM a JOIN a AS b USING (page);
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT max(n) FROM r;
FROM silver.visits |> WHERE page = '/a' |> AGGREGATE count(*) AS n GROUP BY page |> ORDER BY n;
(SELECT page FROM silver.visits) UNION ALL (SELECT page FROM silver.visits_public) EXCEPT SELECT '/c';
SELECT page, rank() OVER (PARTITION BY event_hour ORDER BY event_time DESC) FROM silver.visits QUALIFY 1 = 1;
SELECT event_hour, page, count(*) FROM silver.visits GROUP BY GROUPING SETS ((event_hour), (page), ());
SELECT * FROM (SELECT page, event_hour FROM silver.visits) PIVOT (count(*) FOR page IN ('/a', '/b'));
SELECT page FROM silver.visits WHERE page IN (SELECT page FROM silver.visits_public) AND EXISTS (SELECT 1);
SELECT * FROM silver.visits v, LATERAL (SELECT v.page AS p);
SELECT /*+ BROADCAST(v) */ page FROM silver.visits TABLESAMPLE (50 PERCENT) AS v;
SELECT window.start, count(*) FROM silver.visits GROUP BY window(event_time, '10 minutes');
SELECT * EXCEPT (page), current_timestamp(), current_date, now(), uuid(), typeof(page) FROM silver.visits;
DESCRIBE TABLE EXTENDED silver.visits;
EXPLAIN FORMATTED WITH a AS (SELECT 1) SELECT * FROM a;
SELECT page FROM silver.visits WHERE page = '${env:HOME}'
"""
"""What a person may ask; statements end with a semicolon."""

ATTACKS = """
WITH x AS (SELECT 1) DELETE FROM delta.`{lake}/silver/visits`;
WITH x AS (SELECT 'a' AS a) INSERT INTO delta.`{lake}/silver/visits` SELECT * FROM x;
FROM silver.visits INSERT OVERWRITE LOCAL DIRECTORY '{folder}/copy' USING csv SELECT page;
INSERT OVERWRITE LOCAL DIRECTORY '{folder}/copy' USING csv SELECT 1;
DELETE FROM silver.visits;
DROP VIEW silver.visits;
CREATE TABLE t USING parquet LOCATION '{folder}/t' AS SELECT 1 AS a;
CREATE TEMPORARY VIEW v USING text OPTIONS (path '{secret}');
CREATE TEMPORARY FUNCTION f AS 'java.lang.System';
SELECT * FROM text.`{secret}`;
SELECT (SELECT max(value) FROM text.`{secret}`);
WITH x AS (SELECT * FROM text.`{secret}`) SELECT * FROM x;
SELECT transform(array(1), x -> (SELECT max(value) FROM text.`{secret}`));
FROM text.`{secret}` |> SELECT value;
SELECT * FROM binaryFile.`{secret}`;
SELECT * FROM delta.`{lake}/silver/visits`;
SELECT * FROM `audited-write`.`x`;
EXPLAIN SELECT * FROM text.`{secret}`;
DESCRIBE QUERY SELECT * FROM text.`{secret}`;
DESCRIBE HISTORY delta.`{lake}/silver/visits`;
DESCRIBE FUNCTION reflect;
SELECT reflect('java.lang.System', 'getenv', 'HOME');
SELECT java_method('java.lang.System', 'getProperty', 'user.home');
SELECT `reflect`('java.lang.System', 'getenv', 'HOME');
SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME');
SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv', 'HOME');
SELECT page, sum(1) OVER (ORDER BY reflect('java.lang.System', 'getenv', page)) FROM silver.visits;
SELECT * FROM IDENTIFIER('text.`{secret}`');
SELECT TRANSFORM (page) USING 'cat {secret}' AS (a STRING) FROM silver.visits;
SELECT from_xml('<a/>', 'a INT');
SELECT from_protobuf(CAST('x' AS BINARY), 'm', '{secret}');
EXECUTE IMMEDIATE 'SELECT * FROM text.`{secret}`';
BEGIN SELECT 1; END;
SET spark.sql.variable.substitute=true;
ADD JAR '{secret}';
CACHE TABLE x AS SELECT * FROM text.`{secret}`;
REFRESH '{secret}';
CALL system.run('x');
CREATE DATABASE d LOCATION '{folder}/d';
SHOW CREATE TABLE silver.visits;
RESTORE TABLE delta.`{lake}/silver/visits` TO VERSION AS OF 0
"""


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """One hour with two visits."""
    found = deploy("sql")
    times = [datetime(2026, 1, 5, 10, minute, tzinfo=timezone.utc) for minute in (5, 6)]
    visits = pa.table({"event_hour": ["2026-01-05T10"] * 2, "event_time": times, "page": ["/a", "/b"]})
    write_deltalake(found.lake.path("silver.visits"), visits)
    return found


@pytest.fixture(scope="module")
def secret(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that the server may read, but that no statement may return."""
    file = tmp_path_factory.mktemp("system") / "passwd"
    file.write_text(SECRET + "\n", encoding="utf-8")
    return file


@pytest.fixture
def judge(deployment: Deployment) -> Iterator[Judge]:
    """Return the fate of a statement: `accepted`, `refused`, or the error condition of Spark."""
    with deployment.session() as spark:
        for name in VIEWS:
            deployment.lake.read(spark, "silver.visits").createOrReplaceTempView(view(name))

        def found(statement: str) -> str:
            try:
                require_read_only(spark, statement, map(view, VIEWS))
            except ConfigurationError as error:
                return "refused" if "only queries are run here" in error.what else error.what
            except PySparkException as error:
                return str(error.getCondition())
            return "accepted"

        yield found


def named(statement: str) -> str:
    """Add the view names to a statement, as the command does."""
    return TABLE.sub(lambda match: view(match.group(0)), statement)


def state(deployment: Deployment, secret: Path, spark: Any) -> dict[str, Any]:
    """Return all state that a statement could change: files, the session's views, functions and settings."""
    folders = (deployment.settings.lake, deployment.landing, secret.parent, Path("spark-warehouse"))
    return {
        "files": {file: file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()},
        "relations": sorted((table.name, table.tableType) for table in spark.catalog.listTables()),
        "databases": sorted(base.name for base in spark.catalog.listDatabases()),
        "settings": spark.conf.getAll,
    }


def test_allowed_statements_are_accepted(judge: Judge) -> None:
    outcomes = {query: judge(named(query)) for query in ACCEPTED.strip().split(";\n")}
    assert {query: outcome for query, outcome in outcomes.items() if outcome != "accepted"} == {}


def test_other_statements_are_refused_without_effect(
    judge: Judge, said: Said, deployment: Deployment, secret: Path
) -> None:
    places = {"lake": deployment.settings.lake, "folder": secret.parent, "secret": secret}
    attacks = [attack.format(**places) for attack in ATTACKS.strip().split(";\n")]
    with deployment.session() as spark:
        judge("SELECT 1")
        before = state(deployment, secret, spark)
        outcomes = [judge(named(attack)) for attack in attacks]
        # Spark's own parser refuses some as syntax errors.
        assert {*outcomes} <= {"refused", "PARSE_SYNTAX_ERROR"}, dict(zip(attacks, outcomes, strict=True))
        assert outcomes.count("PARSE_SYNTAX_ERROR") < 10
        for attack in (attacks[0], attacks[9], attacks[15]):
            code, out, err = said("sql", attack)
            assert (code, out) == (2, "")
            assert "only queries are run here, over the lake's tables" in err
            assert SECRET not in err
        assert state(deployment, secret, spark) == before


def test_times_are_printed_in_utc_whatever_their_year(
    said: Said, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time = "SELECT event_time, TIMESTAMP '0000-01-01 00:00:00' AS a, TIMESTAMP '9999-12-31 23:59:59.5' AS b, "
    time += "DATE '0000-01-01' AS c, struct(array(event_time) AS d) AS s, map('k', event_time) AS m "
    code, out, err = said("sql", f"{time} FROM silver.visits WHERE page = '/a'", "--json")
    assert (code, err) == (0, "")
    visit = "2026-01-05 10:05:00Z"
    wanted = {"event_time": visit, "a": "0000-01-01 00:00:00Z", "b": "9999-12-31 23:59:59.5Z", "c": "0000-01-01"}
    nested = "2026-01-05 10:05:00.000000Z"
    assert json.loads(out) == [wanted | {"s": {"d": [nested]}, "m": {"k": nested}}]
    assert visit in said("sql", "SELECT event_time FROM silver.visits")[1]
