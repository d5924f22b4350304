r"""Values chosen by visitors and producers: shown as text on every medium, and in no error.

A hostile value is printed visibly escaped: `\x1b`, `\u202e`. Errors of Spark and of drivers quote rows; the errors
that the platform stores do not.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from dagster import Failure
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from alert_servers import Posted, web_server
from blogdata.errors import foreign, shown
from blogdata.operate import config
from blogdata.runs.retries import failed
from lineage.command_line import Said
from lineage.conftest import Deploy, deploy, said
from lineage.deployment import Deployment, event, module

__all__ = ["deploy", "said"]
HOSTILE = "/\x1b[2J\x1b]0;x\x07\x9b31m[/red][link=https://e.example]\u202e\u2028\r\nFORGED line\x00\x7f\u200b"
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069]|^FORGED", re.MULTILINE)
MARKER = "marker-of-a-person-4711"


@pytest.fixture(scope="module")
def hook() -> Iterator[Posted]:
    with web_server() as posted:
        yield posted


@pytest.fixture(scope="module")
def deployment(deploy: Deploy, hook: Posted) -> Deployment:
    """One hour with hostile values, and one with a hostile file name."""
    found = deploy("shown")
    with (found.settings.home / "blogdata.toml").open("a", encoding="utf-8") as settings:
        settings.write(f'\n[[alerts]]\nname = "hook"\naddress = "{hook.channel}"\n')
    context = {"technical": {"browser": HOSTILE, "device_type": HOSTILE}, "referral": f"https://{HOSTILE}"}
    bad = event("10:05", f"{HOSTILE}?utm_campaign={HOSTILE}", context=context, user_id=HOSTILE, **{f"new{HOSTILE}": 1})
    found.land("2026-01-05T10", [event("10:06", "/a"), bad, b'{"page": "' + HOSTILE.encode() + b'"'])
    # Not a valid archive: it holds its hour, and is named.
    found.land("2026-01-05T11", [b"\x1f\x8b\x08 damaged"], name=f"visits{HOSTILE[1:12]}\u202e\nFORGED.json.gz")
    return Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(found.settings.home)}))


def test_each_medium_shows_a_hostile_value_as_text() -> None:
    assert shown.line(HOSTILE).startswith(r"/\x1b[2J\x1b]0;x\x07\x9b31m[/red]")
    assert "\n" not in shown.line(HOSTILE)
    assert shown.block(f"a\n{HOSTILE}").split("\n")[1].startswith(shown.INDENT)
    assert shown.block(shown.block(HOSTILE)) == shown.block(HOSTILE)
    assert shown.message(HOSTILE, 20) == "/ [2J ]0;x 31m[/red…"
    assert json.loads(shown.json_text({HOSTILE: [HOSTILE]})) == {HOSTILE: [HOSTILE]}
    assert all(each.startswith(shown.INDENT) for each in shown.markdown(f"# a\n{HOSTILE}\n- b").split("\n"))
    for text in (shown.line(HOSTILE), shown.block(HOSTILE), shown.message(HOSTILE, 99), shown.json_text(HOSTILE)):
        assert not FORBIDDEN.findall(text)
    # Joiners, accents and other scripts are kept.
    assert shown.line("é 日本 👩\u200d💻") == "é 日本 👩\u200d💻"


def quoting(spark: Any, folder: Path, database: str) -> Iterator[tuple[BaseException, str]]:
    """Build errors that quote a marker, each with a word that names its rule."""
    table = f"delta.`{folder}/t`"
    spark.sql(f"CREATE TABLE {table} (login STRING NOT NULL, n INT) USING delta")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT short_login CHECK (length(login) < 5)")
    for statement, word in (
        (f"INSERT INTO {table} VALUES ('{MARKER}', 1)", "short_login"),
        (f"INSERT INTO {table} SELECT element_at(array('{MARKER}'), 1), CAST('{MARKER}' AS INT)", "CAST_INVALID_INPUT"),
        (f"SELECT raise_error('{MARKER}')", "USER_RAISED_EXCEPTION"),
        (f"SELECT map('{MARKER}', 1, '{MARKER}', 2)", "DUPLICATED_MAP_KEY"),
        (f"SELECT to_timestamp('{MARKER}')", "CAST_INVALID_INPUT"),
    ):
        with pytest.raises(PySparkException) as spark_failed:
            spark.sql(statement).collect()
        yield spark_failed.value, word
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE logins (login TEXT CONSTRAINT once PRIMARY KEY)")
        connection.execute("INSERT INTO logins VALUES (%s)", [MARKER])
        with pytest.raises(psycopg.errors.UniqueViolation) as refused:
            connection.execute("INSERT INTO logins VALUES (%s)", [MARKER])
    yield refused.value, "once"
    with pytest.raises(pa.ArrowInvalid) as invalid:
        pa.array([MARKER]).cast(pa.int64())
    yield invalid.value, "ArrowInvalid"
    with pytest.raises(ValueError, match=MARKER) as no_number:
        int(MARKER)
    yield no_number.value, "ValueError"


def test_a_stored_foreign_error_names_the_rule_and_no_value(spark: Any, tmp_path: Path, database: str) -> None:
    for error, word in quoting(spark, tmp_path, database):
        assert MARKER in str(error)
        kept = failed(error) if isinstance(error, Exception) else error
        assert isinstance(kept, Failure)
        for text in (foreign.unquoted(error), str(kept.description), str(kept.metadata)):
            assert word in text
            assert MARKER not in text
        assert MARKER not in "".join(traceback.format_exception(kept))


def test_no_value_of_an_error_is_kept_outside_of_the_tables(
    deployment: Deployment, hook: Posted, said: Said, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deduplicator = module("blogdata.patterns.error_management.windowed_deduplicator")
    deduplicate = deduplicator.deduplicate

    def wrong(*given: Any, **named: Any) -> Any:
        return deduplicate(*given, **named).withColumn("page", F.expr("CAST(user_id AS INT)").cast("string"))

    monkeypatch.setattr(deduplicator, "deduplicate", wrong)
    deployment.land("2026-01-05T12", [event("12:05", "/c", user_id=MARKER)])
    code, *output = said("run", "--for", "silver.visits")
    assert (code, "silver.visits" in str(output)) == (1, True)
    output += [text for command in ("plan", "status", "report", "ledger") for text in said(command)[1:]]
    assert [text for text in output if MARKER in text or FORBIDDEN.findall(text)] == []
    assert MARKER not in f"{caplog.text} {hook.bodies} {events_of(deployment)}"
    lake, landing = deployment.settings.lake.resolve(), deployment.landing.resolve()
    files = [file for file in deployment.settings.home.resolve().rglob("*") if file.is_file()]
    kept = [file for file in files if not file.is_relative_to(lake) and not file.is_relative_to(landing)]
    assert any(file.suffix == ".db" for file in kept)
    assert [str(file) for file in kept if MARKER.encode() in file.read_bytes()] == []


def events_of(deployment: Deployment) -> list[Any]:
    events = deployment.lake.table("ops.events")
    assert events is not None
    return deployment.rows("ops.events", *(field.name for field in events.schema().fields))
