"""Page views for people outside: no row leads to a person."""

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import Column, RowRule
from blogdata.contract.watch import Sla, Watch
from blogdata.patterns.security import anonymizer
from blogdata.patterns.security.anonymizer import Anonymity
from blogdata.planning.reaches import COMPLETE
from quality.contracts import columns as c
from quality.contracts.page_views import IN_ITS_WEEK, ROWS_IN, WEEK

PROMISED = Anonymity(
    k=5,
    l=2,
    alike=("event_date", "part_of_day", "section", "browser", "country"),
    sensitive="came_from",
    number="visitor",
    count="page_views",
    most=10,
    noise=2,
)
"""What the rows promise; to change `k` or `l` is to edit these numbers, and to compute the weeks again."""
GIVEN_UP = ("country", "browser", "part_of_day", "section")
"""Columns that say `any` where too few visitors share their value, the first one first."""
_OR_ANY = f"any if fewer than {PROMISED.k} visitors share it"

VISITS_SHARED = Contract(
    dataset="gold.visits_shared",
    description="Visitors of a section in a part of a day, for people outside: each row is like those of at least "
    f"{PROMISED.k} visitors; the week is computed once its 168 hours are there",
    owner="team:analytics",
    reads=(Read("silver.visits_enriched", COMPLETE),),
    runs=Runs(on=On.ALL_THERE, at=Clock.WEEKLY),
    columns=(
        c.EVENT_WEEK,
        c.EVENT_DATE,
        c.text("part_of_day", f"Hours of the page views, such as 06-12 (UTC); {_OR_ANY}"),
        c.text("section", f"First part of the pages' path, / if it has no other part; {_OR_ANY}"),
        c.text("browser", f"Browser family or unknown; {_OR_ANY}"),
        c.text("country", f"Country code or unknown; {_OR_ANY}"),
        Column(
            "visitor",
            "Number of the visitor among those who look alike, from 1, drawn anew for each such group",
            type="INT",
            nullable=False,
        ),
        c.text(
            "came_from",
            f"Host that most of the page views came from, or direct; any if fewer than {PROMISED.k} "
            "visitors of the week came from it",
        ),
        c.count(
            "page_views",
            f"Page views, those above {PROMISED.most} left out, and then up to {PROMISED.noise} more or "
            "less; the sum of those who look alike is exact",
        ),
    ),
    key=(*PROMISED.alike, PROMISED.number),
    partitioning=WEEK,
    rules=(
        IN_ITS_WEEK,
        RowRule("numbered", "visitor >= 1", "Visitors have numbers from 1"),
        RowRule(
            "bounded", f"page_views BETWEEN 1 AND {PROMISED.most + PROMISED.noise}", "Nobody stands out by page views"
        ),
    ),
    audits=anonymizer.audits(PROMISED),
    anonymous=True,
    rows_in=ROWS_IN,
    stands_for="sum(page_views)",
    reasons={"aggregated": "sum(page_views) - count(1)"},
    left_out={
        "aggregated": "the sum of `page_views` less the number of rows",
        "private": "may not be shared",
        "withheld": "too few visitors look alike, or they came from too few hosts",
        "beyond": f"more than {PROMISED.most} page views of a row",
    },
    statistics=("event_date", "section"),
    patterns=("Anonymizer", "Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=12,
    watch=Watch(sla=Sla()),
)
