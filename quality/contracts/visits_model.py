"""Page views modelled for queries, of the same rows: normalized (facts, devices, hosts), and in One Big Table."""

from dataclasses import replace
from functools import partial

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import RowRule
from blogdata.contract.watch import Sla, Watch
from blogdata.contract.writes import Merge
from blogdata.planning.reach import SAME, WHOLE
from blogdata.planning.reaches import COMPLETE, Shown
from quality.contracts import columns as c
from quality.contracts.page_views import CUBE_DIMENSIONS, IN_ITS_WEEK, ROWS_IN, WEEK

VIEWS, DEVICES = "gold.visits_snowflake_views", "gold.visits_snowflake_devices"
STAR_HOSTS = "gold.visits_star_hosts"
DEVICE = ("device_type", "device_version")
UNLISTED = "other sites"
KEYS = ("event_date", "page", "referral_host", "browser", *DEVICE)
"""What page views are counted by, within a week."""

PAGE = c.text("page", "Path of the page, or unknown")
_, BROWSER, REFERRAL_HOST = CUBE_DIMENSIONS
DEVICE_TYPE = c.text("device_type", "Device type; unknown if the device is")
DEVICE_VERSION = c.text("device_version", "Device version; unknown if the device is")
DEVICE_NAME = c.optional_text("device_name", "Name for people, as it is now; null of an unknown device")
VIEWS_COUNTED = c.count("views", "Page views", sourceless="counts rows")
_LOOKED_UP = "found by the program, by the name beside it"
SITE = c.text("site", "The site a host belongs to: the entry of the list of referrers, or the host without www.")
KIND = c.text("kind", "Kind of the site by the list of referrers: search, social, AI assistant, mail, no referrer, ...")
NAMES = {"names": (*DEVICE, "device_name")}
KINDS = {"kinds": (f"CASE WHEN kind <> '{UNLISTED}' THEN site END", "kind")}
"""Sites on the list of referrers; all others are one entry, because there is no end of them. So a week with a site that
a newer list names for the first time keeps its kind until it is computed again."""
COUNTED = RowRule("counted", "views >= 1", "A group has page views")
ENTITY = ("Normalizer", "Merger", "Audit-Write-Audit-Publish")

entity = partial(Contract, owner="team:analytics", write=Merge())
"""The contract of a table with one row for each thing that page views are about."""

VISITS_SNOWFLAKE_VIEWS = Contract(
    dataset=VIEWS,
    description="Page views of a week, counted by day, page, referring host, browser and device; the week is computed "
    "once its 168 hours are there",
    owner="team:analytics",
    reads=(Read("silver.visits_enriched", COMPLETE),),
    runs=Runs(on=On.ALL_THERE, at=Clock.WEEKLY),
    columns=(c.EVENT_WEEK, c.EVENT_DATE, PAGE, REFERRAL_HOST, BROWSER, DEVICE_TYPE, DEVICE_VERSION, VIEWS_COUNTED),
    key=KEYS,
    partitioning=WEEK,
    rules=(COUNTED, IN_ITS_WEEK),
    rows_in=ROWS_IN,
    stands_for="sum(views)",
    reasons={"aggregated": "sum(views) - count(1)"},
    left_out={"aggregated": "the sum of `views` less the number of groups"},
    statistics=("event_date", "page"),
    patterns=("Normalizer", "Distributed Aggregator", "Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=12,
    watch=Watch(sla=Sla()),
)

VISITS_SNOWFLAKE_DEVICES = entity(
    dataset=DEVICES,
    description="The devices that page views were counted by, each with the name it has now",
    reads=(Read(VIEWS, WHOLE), Read("silver.devices", WHOLE, optional=True)),
    columns=(DEVICE_TYPE, DEVICE_VERSION, DEVICE_NAME),
    key=DEVICE,
    breakdowns=NAMES,
    rows_in=f"devices that rows of `{VIEWS}` name",
    statistics=DEVICE,
    patterns=ENTITY,
)

VISITS_STAR_HOSTS = entity(
    dataset=STAR_HOSTS,
    description="The hosts that page views came from, each with the site it belongs to and the kind of that site",
    reads=(Read(VIEWS, WHOLE),),
    columns=(REFERRAL_HOST, replace(SITE, sourceless=_LOOKED_UP), replace(KIND, sourceless=_LOOKED_UP)),
    key=("referral_host",),
    breakdowns=KINDS,
    rows_in=f"hosts that rows of `{VIEWS}` name",
    statistics=("referral_host",),
    patterns=ENTITY,
)

VISITS_OBT = Contract(
    dataset="gold.visits_obt",
    description=f"One Big Table: the rows of `{VIEWS}`, each with all that is known of its host and device",
    owner="team:analytics",
    reads=(Read(VIEWS, SAME), Read(DEVICES, Shown(breakdown="names")), Read(STAR_HOSTS, Shown(breakdown="kinds"))),
    columns=(
        replace(c.EVENT_WEEK, answers="How was this week, compared with the one before?"),
        replace(c.EVENT_DATE, answers="On which days do most readers come?"),
        replace(PAGE, answers="Which pages are read most?"),
        replace(REFERRAL_HOST, answers="By which of its hosts does a site send readers, such as the one for phones?"),
        replace(SITE, answers="Which sites bring readers?"),
        replace(KIND, answers="How many readers do search engines bring, and how many social networks?"),
        replace(BROWSER, answers="In which browsers do the pages have to work?"),
        replace(DEVICE_TYPE, answers="For which devices are the pages laid out?"),
        replace(DEVICE_VERSION, answers="Which versions of a device are still in use?"),
        replace(DEVICE_NAME, answers="What is the device called in a report for people?"),
        replace(VIEWS_COUNTED, answers="How many page views?", sourceless=None),
    ),
    key=KEYS,
    partitioning=WEEK,
    rules=(COUNTED, IN_ITS_WEEK),
    breakdowns={**NAMES, **KINDS},
    statistics=("event_date", "page"),
    patterns=("Denormalizer", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=12,
    watch=Watch(sla=Sla()),
)
