"""silver.places: where the addresses of visits are, asked for once while an answer is valid.

A geolocation service is asked in a step of its own, `landing.place_answers`, which stores the answers in the journal;
the step of the table publishes what the journal has, and asks nobody. Its retry, a re-execution of what has failed and
a later run find the answers there.
"""

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import place_answers as rules
from assets.transforms.place_answers import Question
from blogdata.lake.commit import WHOLE_TABLE, Account, Commit, Entry
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import PaidStep, computes
from blogdata.orchestration.step import FullDelivery, Step
from blogdata.services.locations import EmbeddedTable, journal_of, locator_of
from quality.contracts.places import WAITING


def _ask(step: Step) -> Mapping[str, Any]:
    """Ask the service for the addresses of new visits that no valid answer covers."""
    settings = step.deployment.settings()
    if settings.geolocation.url is None:
        # The service was removed while the run was under way: the embedded table's answers are none of a service.
        return {}
    asked = rules.ask(_questions(step, _known(step), disclosed=True), locator_of(settings), journal_of(settings))
    return {"answered": len(asked.answers), "waiting": len(asked.missing)}


place_answers = PaidStep(
    name="landing.place_answers",
    dataset="silver.places",
    description="Answers of the geolocation service about addresses of new visits, paid for once and kept in a journal "
    "until they are published; an address without an answer waits",
    pay=_ask,
)


@computes("silver.places")
def places(step: Step) -> Mapping[str, Commit]:
    """Publish the answers for addresses of new visits that no valid answer covers; given answers do not change."""
    settings = step.deployment.settings()
    by_service, known = settings.geolocation.url is not None, _known(step)
    asked = _questions(step, known, disclosed=by_service)
    journal = journal_of(settings)
    answers = journal.stored() if by_service else rules.look_up(asked, EmbeddedTable())
    rows = rules.answers(asked, answers, datetime.now(timezone.utc), by_service=by_service)
    given = step.spark.createDataFrame(rows, step.contract.ddl)

    def after(published: DataFrame) -> DataFrame:
        # What waited is given anew, or gone: the visitor does not allow any more that it is asked for.
        answered = published.where(F.col("outcome") != WAITING)
        return answered.join(given, on=["ip", "valid_from"], how="left_anti").unionByName(given)

    kept = known.rows_out - int(known.measures[WAITING] or 0) if known else 0
    commits = step.publish(FullDelivery(rows=after, account=Account(rows_in=kept + len(rows))))
    if by_service:
        # What is dropped is published: it is a day old, and so was a question of this publication or an earlier one.
        journal.settle()
    return commits


def _known(step: Step) -> Entry | None:
    return step.events.publications("silver.places").get(WHOLE_TABLE)


def _questions(step: Step, known: Entry | None, *, disclosed: bool) -> list[Question]:
    # The newest version: that of the publication may be gone, if nothing was published for a long time.
    before = step.lake.read(step.spark, "silver.places") if known else step.spark.createDataFrame([], step.contract.ddl)
    read = known.inputs.get("silver.visits", -1) if known else -1
    hours = [hour for hour, entry in accounts.entries(step, "silver.visits").items() if entry.version > read]
    visits = step.read("silver.visits")
    return rules.questions(visits.where(F.col("event_hour").isin(*hours)), before, visits=visits, disclosed=disclosed)
