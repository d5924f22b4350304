"""bronze.users and bronze.devices: reference data, loaded in full, and changed users of a table."""

from collections.abc import Mapping
from pathlib import PurePath

from assets.bronze import user_changes
from assets.bronze.reference_lines import DeviceLines, UserLines
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import WHOLE_TABLE, Commit, Entry
from blogdata.errors import PlatformError
from blogdata.landing import full_loader
from blogdata.landing.readiness_marker import is_published
from blogdata.planning.reach import changed_rows
from blogdata.planning.snapshot import landed as landed_in
from blogdata.runs.computation import computes
from blogdata.runs.landed_inputs import Landed, newest_day
from blogdata.runs.step import Step, Upstream


@computes("bronze.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Load what landed on each day next to earlier days, unless the size of a full delivery shows that it is broken."""
    landed = Landed.of(step, "users", Grain.DAY)
    _require_believable(step, landed)
    rows = landed.rows(UserLines()).withColumnRenamed("partition", "load_date")
    return step.publish(rows, landed.source())


def _require_believable(step: Step, landed: Landed) -> None:
    """Refuse deliveries that are empty, truncated or far too large: users absent from a delivery are closed.

    A delivery is compared with the previous one. A delivery published from the same files was accepted then, and so was
    one of as many rows beside which more changes have landed. Changed users are no delivery: nobody is absent from
    them; but a day that had a delivery has lost it if only changes are there.
    """
    if full_loader.ACCEPT_SIZE in step.accepted:
        return
    published = step.events.publications("bronze.users")
    before = None
    for day in sorted({*published, *landed.partitions}):
        known, delivery = published.get(day), landed.partitions.get(day)
        if delivery is None or (known is not None and is_published(delivery, known.landed)):
            before = (_delivered_lines(known) if known else 0) or before
            continue
        sizes = landed.measured[day].items()
        files = {name: size for name, size in sizes if not user_changes.is_of_table(PurePath(name).name)}
        accepted = known.rows_out - changed_rows(known) if known else 0
        if landed.measured[day] and not files and not accepted:
            continue
        lines = sum(size.lines for size in files.values())
        rows = lines - sum(size.erased for size in files.values())
        try:
            if not rows or rows != accepted:
                full_loader.guard(before, lines, where=f"bronze.users {day}")
        except PlatformError as error:
            error.partitions = frozenset({day})
            raise
        before = lines


def _delivered_lines(day: Entry) -> int:
    """Count the lines of a day's full delivery; those erased since only if nothing else landed on it."""
    changes = changed_rows(day)
    return day.rows_in if day.rows_out and not changes else day.rows_out - changes


@computes("bronze.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Publish the newest complete delivery as a new copy, unless its size shows that it is broken."""
    # The planner's definition of a delivery: what staleness does not count must not be published.
    day = newest_day(landed_in(step.landing_zone, "devices", Grain.DAY), step.landing / "devices")
    landed = Landed.of(step, "devices", Grain.DAY, [day])
    last = step.events.publications("bronze.devices").get(WHOLE_TABLE)
    if full_loader.ACCEPT_SIZE not in step.accepted:
        full_loader.guard(last.rows_out if last else None, landed.line_count(day), where="bronze.devices")
    landed.require_published_lines()
    rows = landed.rows(DeviceLines()).withColumnRenamed("partition", "load_date")
    state = landed.states()[day]
    source = Upstream(
        accounts={WHOLE_TABLE: landed.accounts()[day]},
        files={WHOLE_TABLE: landed.files()[day]},
        landed={WHOLE_TABLE: f"{day}:{state}"},
        copy=f"v{day}-{state[:12]}",
    )
    return step.publish(rows, source)
