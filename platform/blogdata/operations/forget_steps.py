"""The steps of an erasure, in order; each may be done again, so that one that was killed goes on where it was."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from blogdata.erasure import certificates, clearing
from blogdata.erasure.cleared import Cleared
from blogdata.erasure.current_rows import KEY, Rows
from blogdata.erasure.journal import FILE, Erasure, Journal
from blogdata.erasure.persons import landed_files
from blogdata.erasure.plan import built_anew
from blogdata.erasure.taking_out import TakingOut, without_landed_files
from blogdata.errors import PlatformError
from blogdata.errors.remedies import GoOnForgetting, Remedy, Run
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.operations import unserved
from blogdata.operations.job import Runs
from blogdata.orchestration.landing import bounds_of
from blogdata.planning import clock
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.run import RunContext
from blogdata.publish.target import Engine
from blogdata.services.config import Settings
from blogdata.suppression.entry import erase_known
from blogdata.suppression.suppression_list import SuppressionList
from quality.contracts import CONTRACTS, EVERY, GRAPH, LANDED, STREAMED
from quality.contracts.streams import streamed_inputs
from resources.spark import SparkResource
from resources.zone import zone_of

_FILES_AT_ONCE = 100
"""Landed files that are overwritten while other runs wait to read theirs."""
_NAMED = 5
COMPUTED = "computed again"
"""What the step has done that computes again what was computed from their lines."""


PLACES = CONTRACTS["silver.places"]
NEVER_COMPUTED_AGAIN = (*STREAMED.values(), PLACES)
"""Datasets whose rows stay as they were published: the persons' rows are taken out of them."""


class NotComputedAgain(PlatformError):
    """Raised when partitions that may have rows of a forgotten person could not be computed again."""


def suppress(settings: Settings, erasure: Erasure) -> None:
    """Put the persons on the suppression list: whatever lands from now on does not bring them back."""
    SuppressionList.of(settings).add(erasure.persons, erasure.at, erasure.registered)


def overwrite(settings: Settings, erasure: Erasure) -> None:
    """Overwrite the landed lines of all persons on the list."""
    files, _ = landed_files(settings.landing, bounds_of(settings))
    for first in range(0, len(files), _FILES_AT_ONCE):
        erase_known(settings, settings.landing, files[first : first + _FILES_AT_ONCE])


class StillRemembered(PlatformError):
    """Raised when a place cannot be cleared now, as somebody uses it."""


def take_out(settings: Settings, erasure: Erasure) -> None:
    """Take the persons out of what is not computed from landed files any more: streams, hours without files.

    Raises:
        StillRemembered: Some places could not be cleared yet.
    """
    look = _look(settings)
    taking = _taking(settings, erasure, Rows)
    gone = without_landed_files(look, LANDED.values())
    done = [taking.of_dataset(LANDED[dataset], keys) for dataset, keys in gone.items()]
    for stream in streamed_inputs(settings.checkpoints):
        done += taking.of_stream(stream)
    _require_cleared(done)


def recompute(settings: Settings, erasure: Erasure, runs: Runs) -> None:
    """Compute all that was computed from these lines again, by the plan that knows what is stale.

    Raises:
        NotComputedAgain: Published partitions stay as they were.
    """
    look = _look(settings)
    there = [name for name in CONTRACTS if look.published(name)]
    outcome = runs.run(for_=[*there, *unserved.configured(settings)])
    if (anew := built_anew(Planner(graph=GRAPH, look=_look(settings)))).runs:
        outcome = runs.run_plan(anew)
    look = _look(settings)
    plan = Planner(graph=GRAPH, look=look).outstanding()
    behind = [
        f"{main} {key}".rstrip()
        for main, keys in plan.wanted().items()
        for key in (keys or [""])
        if key in look.published(main)
    ]
    refused = [error.where for error in plan.refused if look.published(error.where)]
    if behind or refused:
        named = [*behind, *refused]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        raise NotComputedAgain(
            what=f"published partitions were not computed again: {', '.join(named[:_NAMED])}{more}; "
            + "; ".join(outcome.problems[:_NAMED]),
            where="forget",
            next_step=Remedy(
                "they may still have rows of the persons; have them computed by ",
                Run(),
                ", then go on here: ",
                GoOnForgetting(),
            ),
        )
    if look.published(PLACES.dataset):
        _require_cleared([_taking(settings, erasure, UnusedAddresses).of_dataset(PLACES)])


class UnusedAddresses(Rows):
    """Addresses that no visit has any more, instead of the persons': one that others have, too, stays."""

    def of(self, contract: Contract, partitions: Collection[str] | None = None) -> pa.Table | None:
        """Find the rows of silver.places whose address is in no row of silver.visits."""
        known = self.marked_and_others(contract, ["ip"])["ip"].cast(pa.string())
        used = self.lake.columns("silver.visits", ["ip"])["ip"].cast(pa.string()).combine_chunks()
        unused = known.filter(pc.invert(pc.is_in(known, used)))
        if not len(unused):
            return None
        return pa.table({KEY: pa.array([WHOLE_TABLE] * len(unused), pa.string()), "ip": unused})


def _taking(settings: Settings, erasure: Erasure, found: type[Rows]) -> TakingOut:
    from assets.code_version import version

    events = EventLog(Lake(root=str(settings.lake)))
    return TakingOut(
        rows=found(lake=events.lake, events=events, landing=settings.landing, persons=erasure.persons),
        run=RunContext(run_id=f"forget-{uuid.uuid4()}", job="forget", code_version=version(), trigger="forget"),
        engine=Engine(settings.spark.writes),
        spark=SparkResource(home=str(settings.home)).guard,
        note=Journal.of(settings).note,
    )


def clear(settings: Settings, erasure: Erasure) -> None:
    """Clear all that remembers the persons besides landed files and newest versions, and issue the certificate.

    Raises:
        StillRemembered: Some places could not be cleared yet.
    """
    from assets.code_version import version

    journal = Journal.of(settings)
    since = erasure.done.get(COMPUTED, erasure.at)
    done = clearing.clear(
        settings, EVERY.values(), erasure.persons, since=since, began=erasure.at, aside=(FILE,), note=journal.note
    )
    _require_cleared(done.cleared)
    for one in done.cleared:
        journal.note(one)
    done = replace(done, cleared=tuple(journal.noted()))
    at, lake = datetime.fromtimestamp(erasure.at, timezone.utc), Lake(root=str(settings.lake))
    hashes = SuppressionList.of(settings).hashes(erasure.persons)
    certificates.issue(lake, f"{at:%Y-%m-%dT%H:%M:%S.%f}", clock.now(), version(), hashes, done)


def _require_cleared(done: Iterable[Cleared]) -> None:
    if left := [f"{one.place}: {one.left}" for one in done if one.left]:
        raise StillRemembered(
            what=f"it could not be cleared everywhere; {'; '.join(left)}",
            where="forget",
            next_step=Remedy("see to what is named, then go on here: ", GoOnForgetting()),
        )


def _look(settings: Settings) -> Snapshot:
    return Snapshot(zone_of(settings), EventLog(Lake(root=str(settings.lake))))


Step = Callable[..., None]
STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "put on the suppression list": suppress,
        "landed lines overwritten": overwrite,
        "taken out of what is not computed again": take_out,
        COMPUTED: recompute,
        "cleared elsewhere": clear,
    }
)
"""What a step has done to the step; the one that computes takes what runs the lineage, too."""


def go_on(settings: Settings, journal: Journal, say: Callable[[str], None], runs: Runs) -> None:
    """Do the steps that are not done of the erasure under way, and end it."""
    for name, step in STEPS.items():
        erasure = journal.under_way()
        assert erasure is not None
        if name not in erasure.done:
            step(settings, erasure, *([runs] if name == COMPUTED else []))
            journal.finish(name)
            say(name)
    journal.end()
