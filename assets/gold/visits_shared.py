"""gold.visits_shared: visitors of a section in a part of a day, for people outside."""

from collections.abc import Mapping

from assets.gold.fan_in import gather
from assets.transforms import shared_visits
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.services import secrets
from quality.contracts.keys import VISITOR_KEY


@computes("gold.visits_shared")
def visits_shared(step: Step) -> Mapping[str, Commit]:
    """Share a week's visitors who look alike, and account for those who are withheld."""
    period = gather(step)
    persons = shared_visits.grouped(period.visits)
    secret = secrets.read(step.deployment.settings(), VISITOR_KEY).reveal()
    left_out = shared_visits.left_out(period.visits, persons)
    accounts = {
        week: Account(rows_in=account.rows_in, reasons=left_out.get(week, {}))
        for week, account in period.accounts.items()
    }
    return step.publish(shared_visits.shared(persons, secret), Upstream(accounts=accounts))
