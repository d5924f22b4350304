"""Devices: as last delivered, and with their history."""

from dataclasses import replace

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import NOBODY, Audit, RowRule
from blogdata.contract.watch import Lag, Watch
from blogdata.contract.writes import Copy, Merge
from blogdata.planning.reach import WHOLE, Landed
from quality.contracts import columns as c
from quality.contracts import landed
from quality.contracts.landed import BYTES, LANDED_LINES

DEVICES_DELIVERED = Contract(
    dataset="bronze.devices",
    description="The devices as last delivered, the whole reference table; earlier deliveries are kept as they were",
    owner="team:platform",
    reads=(Read("landing.devices", Landed(table="devices", grain=Grain.DAY), fields=landed.DEVICE),),
    write=Copy(),
    rows_in=LANDED_LINES,
    columns=(
        replace(c.RAW, subject=NOBODY, classification=c.PERSONAL),
        *c.SOURCE,
        c.LOAD_DATE,
        c.optional_text("type", "Device type"),
        c.optional_text("full_name", "Name for people"),
        c.optional_text("version", "Device version"),
        c.REASONS,
    ),
    rules=(
        RowRule(
            "judged",
            "size(reasons) > 0 OR (type IS NOT NULL AND version IS NOT NULL)",
            "A row is rejected with a reason or names a device",
        ),
    ),
    measures={"bytes": BYTES, "dead": "count_if(size(reasons) > 0)", "load_date": "max(load_date)"},
    breakdowns={"reasons": ("explode(reasons)",)},
    statistics=("type", "version"),
    patterns=("Full Loader", "Readiness Marker", "Dead-Letter", "Proxy"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)

DEVICES = Contract(
    dataset="silver.devices",
    description="Devices with their history, by type and version: what each was called from when to when (SCD2)",
    owner="team:analytics",
    reads=(Read("bronze.devices", WHOLE),),
    write=Merge(),
    columns=(
        c.text("device_type", "Device type"),
        c.text("device_version", "Device version"),
        c.optional_text("full_name", "Name for people"),
        c.count("occurrences", "Rows of the newest delivery it stands for; 0 of a version that no longer holds"),
        c.text("changed_on", "Day of the delivery that made the version what it is (UTC)"),
        c.fact(
            "valid_from",
            "First instant it holds, midnight of that day; null when it always has: of the first delivery",
            type="TIMESTAMP",
        ),
        c.fact("valid_to", "First instant it no longer holds; null when open", type="TIMESTAMP"),
    ),
    key=("device_type", "device_version", "changed_on"),
    rows_in="rows of the newest delivery",
    rules=(
        RowRule(
            "valid_range",
            "valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to",
            "A version holds for some time",
        ),
        RowRule(
            "delivered_while_open",
            "(occurrences > 0) = (valid_to IS NULL)",
            "The newest delivery stands behind the open versions, and behind no other",
        ),
    ),
    audits=(
        Audit(
            "one_open_version",
            "count_if(valid_to is null) = "
            "count(distinct case when valid_to is null then struct(device_type, device_version) end)",
            "No device has two open versions",
        ),
    ),
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(greatest(occurrences - 1, 0))", "earlier_versions": "-count_if(occurrences = 0)"},
    left_out={
        "dead_lettered": "",
        # These rows count as rows out but not as rows in.
        "earlier_versions": "below zero: versions that no longer hold",
    },
    measures={"current": "count_if(valid_to is null)"},
    statistics=("device_type", "device_version"),
    patterns=("Audit-Write-Audit-Publish", "Merger"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
