"""gold.visits_obt: the normalized page views, joined with their hosts and devices when they are written."""

from collections.abc import Mapping

from blogdata.lake.commit import Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.storage import denormalizer
from blogdata.patterns.storage.denormalizer import Dimension
from quality.contracts.visits_model import DEVICE, DEVICES, STAR_HOSTS, VIEWS


@computes("gold.visits_obt")
def visits_obt(step: Step) -> Mapping[str, Commit]:
    """Join the page views of weeks with what is known of their hosts and devices."""
    counted = step.read(VIEWS)
    known = [
        Dimension(rows=step.read(STAR_HOSTS), key=["referral_host"]),
        Dimension(rows=step.read(DEVICES), key=DEVICE),
    ]
    weeks = counted.where(counted["event_week"].isin(*step.partitions))
    return step.publish(
        denormalizer.flatten(weeks, step.contract, known), Upstream(accounts=accounts.same_partition(step, VIEWS))
    )
