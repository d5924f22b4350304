"""silver.places: where the addresses of visits are, asked for once while an answer is valid."""

from collections.abc import Mapping
from datetime import datetime, timezone

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import place_answers as rules
from blogdata.lake.commit import WHOLE_TABLE, Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import FullDelivery, Step
from blogdata.services.locations import journal_of, locator_of
from quality.contracts.places import WAITING


@computes("silver.places")
def places(step: Step) -> Mapping[str, Commit]:
    """Ask for the addresses of new visits that no valid answer covers; answers that were given do not change."""
    known = step.events.publications("silver.places").get(WHOLE_TABLE)
    # The newest version: that of the publication may be gone, if nothing was published for a long time.
    before = step.lake.read(step.spark, "silver.places") if known else _nothing(step)
    read = known.inputs.get("silver.visits", -1) if known else -1
    hours = [hour for hour, entry in accounts.entries(step, "silver.visits").items() if entry.version > read]
    visits = step.read("silver.visits")
    settings = step.deployment.settings()
    locator = locator_of(settings)
    new = visits.where(F.col("event_hour").isin(*hours))
    asked = rules.questions(new, before, visits=visits, disclosed=locator.paid)
    journal = journal_of(settings)
    rows = rules.answers(asked, locator, journal, datetime.now(timezone.utc))
    given = step.spark.createDataFrame(rows, step.contract.ddl)

    def after(published: DataFrame) -> DataFrame:
        # What waited is given anew, or gone: the visitor does not allow any more that it is asked for.
        answered = published.where(F.col("outcome") != WAITING)
        return answered.join(given, on=["ip", "valid_from"], how="left_anti").unionByName(given)

    kept = known.rows_out - int(known.measures[WAITING] or 0) if known else 0
    account = Account(rows_in=kept + len(rows))
    commits = step.publish(FullDelivery(rows=after, account=account))
    if locator.paid:
        # The journal has nothing that is not published now: what a killed run stored was a question of this one, too.
        journal.settle()
    return commits


def _nothing(step: Step) -> DataFrame:
    return step.spark.createDataFrame([], step.contract.ddl)
