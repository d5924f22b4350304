"""gold.visits_snowflake_*, gold.visits_star_hosts: page views of a week, and a table for each thing they are about."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from assets.gold.fan_in import gather
from assets.transforms import visits_model
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import FullDelivery, Step, Upstream
from quality.contracts.visits_model import DEVICE, VIEWS


@computes("gold.visits_snowflake_views")
def visits_snowflake_views(step: Step) -> Mapping[str, Commit]:
    """Count a week's page views from its 168 hours."""
    period = gather(step)
    return step.publish(visits_model.views(period.visits), Upstream(accounts=period.accounts))


@computes("gold.visits_snowflake_devices")
def visits_snowflake_devices(step: Step) -> Mapping[str, Commit]:
    """Merge the names that devices have now; a device that was renamed is one row."""
    counted = step.read(VIEWS)
    reference = step.read("silver.devices") if step.exists("silver.devices") else None
    return step.publish(_each(visits_model.devices(counted, reference), of=counted, key=DEVICE))


@computes("gold.visits_star_hosts")
def visits_star_hosts(step: Step) -> Mapping[str, Commit]:
    """Merge the hosts that page views came from, each with its site and the kind of it."""
    counted = step.read(VIEWS)
    return step.publish(_each(visits_model.hosts(counted), of=counted, key=["referral_host"]))


def _each(rows: DataFrame, *, of: DataFrame, key: Sequence[str]) -> FullDelivery:
    """Deliver the rows of an entity: one for each key that the rows have which refer to it."""
    return FullDelivery(rows=lambda _: rows, account=Account(rows_in=of.select(*key).distinct().count()))
