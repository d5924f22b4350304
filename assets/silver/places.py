"""silver.places: where the addresses of visits are, by the country table inside the package `iptocc`."""

import ipaddress
from collections.abc import Mapping, Sequence

import iptocc

from blogdata.contract.publication import WHOLE_TABLE, Account, Commit
from blogdata.patterns.data_flow import local_sequencer
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import FullDelivery, Step


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
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    return str(found) if found.is_global else None
