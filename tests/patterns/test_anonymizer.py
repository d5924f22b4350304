import random
from collections import Counter
from functools import reduce
from itertools import product
from operator import and_
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pycanon import anonymity
from pyspark.sql import functions as F

from assets.gold import visits_shared
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.security.anonymizer import ANY
from blogdata.table.audit import guard_of, lifted_audits
from blogdata.table.faults import AuditFailed
from blogdata.table.target import Provenance
from quality.contracts.visits_shared import PROMISED, VISITS_SHARED
from toy import target

WEEK, SECRET = "2026-01-05", "s" * 32
BY = [*PROMISED.alike]
Row = dict[str, Any]
COLUMNS = [*BY, PROMISED.number, PROMISED.sensitive, PROMISED.count]
VIEW = (
    "event_week STRING, event_hour STRING, keep_private BOOLEAN, user_id STRING, visit_id STRING, page STRING, "
    "browser STRING, country STRING, referral_host STRING"
)


def page_views() -> list[tuple[Any, ...]]:
    """Two days of 160 visitors; a few browsers, countries and hosts are rare, and so is a page with a name."""
    draw, rows = random.Random(7), []
    hosts = ["direct", "news.example", "duckduckgo.com"]
    for number in range(160):
        browser = draw.choice(["Firefox", "Chrome", "Chrome", "Safari"]) if number % 20 else f"Rare {number}"
        country = draw.choice(["DE", "JP", None]) if number % 25 else f"C{number}"
        host = draw.choice(hosts) if number % 30 else f"blog-{number}.example"
        for at in range(40 if number == 3 else draw.randint(1, 9)):
            day, hour = f"2026-01-0{draw.choice([5, 6])}", draw.randrange(24) if number != 3 else 9
            page = f"/{draw.choice([2025, 2026])}/post-{draw.randrange(150)}" if number != 9 else "/ada-lovelace/cv"
            visit, referral = f"v{number}-{day}-{hour // 6}", host if at % 3 == 0 else "blog.example.org"
            moment, user = f"{day}T{hour:02d}", f"u{number}"
            rows.append((WEEK, moment, number % 8 == 0, user, visit, page, browser, country, referral))
    return rows


@pytest.fixture(scope="module")
def made(spark: Any) -> Any:
    """Page views, the persons who look alike, the shared rows, and these as a table of pandas."""
    visits = spark.createDataFrame(page_views(), VIEW).localCheckpoint()
    persons = visits_shared.grouped(visits).localCheckpoint()
    shared = visits_shared.shared(persons, SECRET).localCheckpoint()
    return SimpleNamespace(visits=visits, persons=persons, shared=shared, table=shared.select(*COLUMNS).toPandas())


def test_k_and_l_hold_by_the_independent_measure(made: Any) -> None:
    assert len(made.table) > 100
    assert anonymity.k_anonymity(made.table, BY) >= PROMISED.k
    assert anonymity.l_diversity(made.table, BY, [PROMISED.sensitive]) >= PROMISED.l
    # Without withholding, the same measure finds too few who look alike.
    everybody = made.persons.toPandas()
    assert anonymity.k_anonymity(everybody, BY) < PROMISED.k
    assert (everybody["shared"].sum(), len(everybody) > len(made.table)) == (len(made.table), True)


def test_what_identifies_somebody_is_not_there(made: Any) -> None:
    values = {str(value) for column in (*BY, PROMISED.sensitive) for value in made.table[column]}
    assert values >= {"2026-01-05", "2025", "Firefox", "any", "direct"}
    rare = [value for value in values if value.startswith(("Rare", "C", "blog-", "u", "v")) and len(value) > 7]
    assert (rare, "ada-lovelace" in values) == ([], False)
    assert not [column.name for column in VISITS_SHARED.columns if column.of_a_person or column.personal]
    assert made.table[PROMISED.count].between(1, PROMISED.most + PROMISED.noise).all()


def test_page_views_are_shared_or_counted_as_left_out(made: Any) -> None:
    left_out = visits_shared.left_out(made.visits, made.persons)[WEEK]
    rows = page_views()
    assert left_out["private"] == sum(row[2] for row in rows) > 0
    assert min(left_out.values()) > 0
    assert made.table[PROMISED.count].sum() + sum(left_out.values()) == len(rows)


def test_counts_are_shifted_within_bounds_and_groups_keep_their_sum(made: Any) -> None:
    exact = (
        made.persons.where("shared").withColumn("page_views", F.least("page_views", F.lit(PROMISED.most))).toPandas()
    )
    shifted = 0
    for key, rows in made.table.groupby(BY):
        true = exact[(exact[BY] == list(key)).all(axis=1)]
        assert rows[PROMISED.count].sum() == true["page_views"].sum()
        assert Counter(rows[PROMISED.sensitive]) == Counter(true[PROMISED.sensitive])
        pairs = list(zip(sorted(rows[PROMISED.count]), sorted(true["page_views"]), strict=True))
        assert all(abs(now - before) <= PROMISED.noise for now, before in pairs)
        shifted += any(now != before for now, before in pairs)
    assert shifted > 0


def test_rows_are_the_same_when_they_are_computed_again_by_the_secret(made: Any) -> None:
    def rows(secret: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, visits_shared.shared(made.persons.repartition(3), secret).select(*COLUMNS).collect()))

    assert rows(SECRET) == sorted(made.table.itertuples(index=False, name=None)) != rows("t" * 32)


def attack(known: list[Row], rows: list[Row], by: list[str], *, candidate: str) -> list[tuple[int, int]]:
    """Look for each person by what is known of one page view, in the most exact group that fits, as an attacker would.

    Returns the number of candidates, and of their sensitive values, of each person that was found.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    sizes = []
    for person in known:
        keys = sorted(product(*[(person[name], ANY) for name in by]), key=lambda key: key.count(ANY))
        group = next((groups[key] for key in keys if key in groups), None)
        if group:
            sizes.append((len({row[candidate] for row in group}), len({row[PROMISED.sensitive] for row in group})))
    return sizes


def test_the_attack_finds_persons_in_the_plain_table_and_nobody_in_the_shared_one(made: Any) -> None:
    plain: list[Row] = []
    known: dict[str, Row] = {}
    for _, hour, private, user, visit, page, browser, country, host in page_views():
        part = int(hour[11:]) // 6 * 6
        values = (hour[:10], f"{part:02d}-{part + 6:02d}", page.split("/")[1], browser, country or "unknown")
        row = {**dict(zip(BY, values, strict=True)), "visit": visit, "page": page, PROMISED.sensitive: host}
        plain.append(row)
        if not private:
            known.setdefault(user, row)
    exposed = attack([*known.values()], plain, [*BY[:2], "page", "browser"], candidate="visit")
    assert sum(candidates == 1 for candidates, _ in exposed) / len(exposed) > 0.8
    hidden = attack([*known.values()], made.table.to_dict("records"), BY, candidate=PROMISED.number)
    assert min(candidates for candidates, _ in hidden) >= PROMISED.k
    assert min(values for _, values in hidden) > 1


def test_rows_that_are_not_anonymous_are_refused_and_nobody_can_lift_it(made: Any, tmp_path: Path) -> None:
    first = made.shared.first()
    spoiled = reduce(and_, [F.col(name) == first[name] for name in BY])
    lacking = made.shared.where(~spoiled | (F.col(PROMISED.number) < PROMISED.k))
    alike = F.when(spoiled, "direct").otherwise(F.col(PROMISED.sensitive))
    # Numbers that hide that somebody is missing: one of them comes twice.
    doubled = F.when(spoiled & (F.col(PROMISED.number) == 2), 1).otherwise(F.col(PROMISED.number))
    distinct = f"count(1) = count(distinct struct({', '.join(VISITS_SHARED.key)}))"
    judged = [F.expr(sql) for sql in (*(audit.expression for audit in VISITS_SHARED.audits), distinct)]
    for frame, verdict in (
        (made.shared, (True, True, True)),
        (lacking, (False, True, True)),
        (made.shared.withColumn(PROMISED.sensitive, alike), (True, False, True)),
        (made.shared.withColumn(PROMISED.number, doubled), (True, True, False)),
    ):
        assert tuple(frame.agg(*judged).first()) == verdict

    guards = [guard_of(VISITS_SHARED.dataset, audit.name) for audit in VISITS_SHARED.audits]
    lifted = target(tmp_path, contract=VISITS_SHARED, lifted=lifted_audits(guards, VISITS_SHARED.dataset))
    with pytest.raises(AuditFailed, match="k_anonymous") as refused:
        overwrite_partitions(lacking, lifted, [WEEK], Provenance())
    assert guards[0] not in refused.value.next_step, "unlike with other audits, no flag is offered"
    assert not lifted.lake.columns(VISITS_SHARED.dataset, ["event_week"]).num_rows, "no row was published"
