"""silver.visits_enriched: visit events with the user, the device and the place as of the event.

silver.places: where the addresses of visits are, by the country table inside the package `iptocc`.
"""

import ipaddress
from collections.abc import Mapping, Sequence

import iptocc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from blogdata.contract.publication import WHOLE_TABLE, Account, Commit
from blogdata.patterns.data_flow import local_sequencer
from blogdata.patterns.data_value import static_joiner
from blogdata.runs import accounts, slices
from blogdata.runs.computation import computes
from blogdata.runs.step import FullDelivery, Step, Upstream
from quality.contracts import CONTRACTS
from quality.contracts.columns import DIRECT
from quality.contracts.enriched import WAITING


def enrich(events: DataFrame, users: DataFrame, devices: DataFrame, places: DataFrame) -> DataFrame:
    """Add the versions of user, device and place that hold at the event, and the referring host, to each event."""
    with_user = static_joiner.join_as_of(
        events,
        users.select("user_id", "registered_datetime", "valid_from", "valid_to"),
        on=("user_id",),
        at="event_time",
        valid_from="valid_from",
        valid_to="valid_to",
        matched="user_known",
    )
    of_device = {"valid_from": "device_from", "valid_to": "device_to"}
    with_device = static_joiner.join_as_of(
        with_user,
        devices.select("device_type", "device_version", "full_name", *of_device).withColumnsRenamed(of_device),
        on=("device_type", "device_version"),
        at="event_time",
        valid_from="device_from",
        valid_to="device_to",
        matched="device_known",
    )
    with_place = with_device.join(places.select("ip", "country", "outcome"), on="ip", how="left")
    host = F.regexp_extract(F.col("referral"), r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?([^/:?#]+)", 1)
    return with_place.withColumns(
        {
            "referral_host": F.when(F.length(host) > 0, F.lower(host)).otherwise(DIRECT),
            "device_name": F.col("full_name"),
            "user_registered": F.col("registered_datetime"),
            "user_version_from": F.col("valid_from"),
            "place_outcome": F.when(F.col("ip").isNotNull(), F.coalesce("outcome", F.lit(WAITING))),
        }
    )


@computes("silver.visits_enriched")
def visits_enriched(step: Step) -> Mapping[str, Commit]:
    """Join user, device and place as of the event, not as of now: a backfill next year gives the same rows."""
    additions = slices.additions(step)  # late events are added to an hour whose others would be joined alike
    events = step.read("silver.visits", step.partitions).where(
        slices.rows_to_read(additions, step.contract, step.partitions)
    )
    reference = [
        step.read(name) if step.exists(name) else step.spark.createDataFrame([], CONTRACTS[name].ddl)
        for name in ("silver.users", "silver.devices", "silver.places")
    ]
    return step.publish(
        enrich(events, *reference),
        Upstream(accounts=accounts.same_partition(step, "silver.visits"), additions=additions),
    )


@computes("silver.places")
def places(step: Step) -> Mapping[str, Commit]:
    """Look up the addresses of new visits that no earlier run has looked up."""
    known = step.events.publications("silver.places").get(WHOLE_TABLE)
    # The newest version: that of the publication may be gone, if nothing was published for a long time.
    now = step.lake.version("silver.places") if known else None
    before = step.lake.read(step.spark, "silver.places", now) if known else step.spark.createDataFrame([], "ip STRING")
    read = known.inputs.get("silver.visits", -1) if known else -1
    hours = [hour for hour, entry in accounts.entries(step, "silver.visits").items() if entry.version > read]
    visits = step.read("silver.visits", hours)
    rows = look_up(local_sequencer.missing(visits, before, key="ip"))
    given = step.spark.createDataFrame(rows, step.contract.ddl)
    account = Account(rows_in=(known.rows_out if known else 0) + len(rows))
    return step.publish(FullDelivery(rows=lambda _: given, account=account, adds=known is not None))


def look_up(addresses: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return the rows of silver.places for addresses as received."""
    public = {address: usual for address in addresses if (usual := _public(address)) is not None}
    countries = dict(zip(public, iptocc.country_code([*public.values()]), strict=True))
    return [
        (
            address,
            "reserved" if address not in public else "found" if countries[address] else "unknown",
            countries.get(address) or None,
        )
        for address in addresses
    ]


def _public(address: str) -> str | None:
    """Return the usual form of an address in a public network; None if it is in none, or is no address.

    An IPv4 address may be written as IPv6 (`::ffff:8.8.8.8`), and what is behind `%` names an interface of the machine
    that saw it.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = parsed.ipv4_mapped or parsed
    return str(parsed) if parsed.is_global else None
