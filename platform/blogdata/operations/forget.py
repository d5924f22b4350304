"""The job `forget`: persons leave the landing zone and all tables, and do not come back.

The configuration of a run stays in Dagster's storage, with its log: neither names a person. Who is forgotten is in a
file of the home, the request; the configuration has its name, and again as the confirmation. The file is emptied as
soon as the erasure's journal has the persons, and removed when the erasure has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from blogdata.erasure import persons as found_persons
from blogdata.erasure import plan
from blogdata.erasure.journal import Erasure, Journal
from blogdata.erasure.persons import SharedValue
from blogdata.erasure.plan import ErasurePlan
from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import GoOnForgetting, Remedy
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.operations.forget_steps import NEVER_COMPUTED_AGAIN, go_on
from blogdata.operations.job import RUNS, operation
from blogdata.orchestration.landing import bounds_of
from blogdata.planning import clock
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.services.config import Settings
from blogdata.services.files import locked
from blogdata.suppression.landed_persons import Identifiers
from quality.contracts import GRAPH, LANDED
from resources.zone import zone_of

REQUESTS = "erasure_requests"
"""Folder of the home with the requests."""
_LOCK = ".forgetting.lock"
"""Name of the file in the home by which one process erases at a time."""


class MadeOfRequests(ConfigurationError):
    """Raised for an id that is in no landed line, as it was made of the address of requests; the error quotes it."""


class ForgetConfig(dg.Config):
    """Which request is carried out, and that this is meant."""

    request: str = Field(
        "",
        description=f"File in {REQUESTS} of the home that names the persons, one a line: a user id, or login:…, "
        "email:…, visit:…, address:…; empty: go on with an erasure that was interrupted",
    )
    confirmation: str = Field("", description="The name of the request again: its persons are forgotten for good")
    shared_stays: bool = Field(False, description="Leave out values that other users have had, too")
    leave: list[str] = Field([], description="Go on although these places are not reached")


def begin(settings: Settings, planned: ErasurePlan) -> None:
    """Record the erasure; from now on it only goes forward."""
    now = clock.now().timestamp()
    Journal.of(settings).write(Erasure(persons=planned.found.persons, at=now, registered=planned.registered))


def alone(settings: Settings) -> AbstractContextManager[None]:
    """Be the only process that erases: two at once would end the erasure under each other's feet."""
    return locked(settings.home / _LOCK, seconds=0)


def is_under_way(settings: Settings, given: Identifiers) -> bool:
    """Return whether an erasure of these persons has begun and not ended; without persons: whether any has."""
    journal = Journal.of(settings)
    erasure = journal.under_way()
    if erasure is None:
        if not given.values():
            raise ConfigurationError(
                what="nobody is named, and no erasure is under way",
                where="forget",
                next_step="name persons: a user id, a login, an e-mail address, a visit, an address, or a file",
            )
        return False
    if not given.values() <= erasure.persons.values():
        raise ConfigurationError(
            what="another erasure has not ended",
            where=str(journal.path),
            next_step=Remedy("end it first: ", GoOnForgetting(), ", without a person; then forget these"),
        )
    return True


def look(settings: Settings, given: Identifiers, *, shared_stays: bool) -> ErasurePlan:
    """Find persons, and plan their erasure.

    Raises:
        SharedValue, MadeOfRequests: The error quotes a value that leads to others, too, or to no landed line.
    """
    files, unreadable = found_persons.landed_files(settings.landing, bounds_of(settings))
    found = found_persons.find(settings.landing, files, given, shared_stays=shared_stays)
    lake, ids = Lake(root=str(settings.lake)), pa.array(sorted(found.unknown), pa.string())
    visits = lake.columns("silver.visits", ("user_id", "visit_id")) if found.unknown else pa.table({})
    if any(pc.any(pc.is_in(column.cast(pa.string()), ids)).as_py() for column in visits.columns):
        raise MadeOfRequests(
            what="an id was made of the address and the agent of requests in access logs: no landed line has it",
            where=", ".join(sorted(found.unknown)),
            next_step="give the address: all requests and visits of that address are then erased",
        )
    planner = Planner(graph=GRAPH, look=Snapshot(zone_of(settings), EventLog(lake)))
    made = plan.look(planner, files, found, landed=LANDED.values(), kept=NEVER_COMPUTED_AGAIN)
    return replace(made, left={**made.left, **{error.where: error.what for error in unreadable}})


def forget(context: dg.OpExecutionContext, config: ForgetConfig) -> Mapping[str, Any]:
    """Carry out a request, or go on with an erasure that was interrupted."""
    settings: Settings = context.resources.deployment.settings()
    file = _file(settings, config.request) if config.request else None
    with alone(settings):
        # Emptied: its erasure has begun.
        given = found_persons.given_in(file) if file is not None and file.stat().st_size else Identifiers()
        if not is_under_way(settings, given):
            looked = _looked(settings, config, given)
            shown = [f"{place}: {rows or 0:,.0f} rows" for place, _, _, rows, _ in looked.rows()]
            context.log.info("\n".join([f"known by: {looked.known_by}", *shown]))
            looked.require_reached(config.leave)
            if config.confirmation != config.request:
                raise ConfigurationError(
                    what=f"nobody has confirmed that the persons of {config.request} ({looked.known_by}) are to be "
                    "forgotten",
                    where="confirmation",
                    next_step="nothing was erased; the log says what would go; to forget them for good: "
                    f"confirmation={config.request}",
                )
            begin(settings, looked)
        if file is not None:
            file.write_bytes(b"")
        runs = getattr(context.resources, RUNS)(command="job forget")
        issued = go_on(settings, context.log.info, runs)
        if file is not None:
            file.unlink()
    return {
        "result": "forgotten: they do not come back",
        "files_with_values": ", ".join(issued["files_with_values"]) or "none",
    }


def _file(settings: Settings, request: str) -> Path:
    folder = settings.home / REQUESTS
    if not folder.is_dir() or request not in {file.name for file in folder.iterdir() if file.is_file()}:
        raise ConfigurationError(
            what=f"there is no request {request}",
            where=str(folder),
            next_step="write the persons into a file there, one a line, whose name says nothing about them",
        )
    return folder / request


def _looked(settings: Settings, config: ForgetConfig, given: Identifiers) -> ErasurePlan:
    try:
        return look(settings, given, shared_stays=config.shared_stays)
    except (SharedValue, MadeOfRequests):
        raise ConfigurationError(
            what="a value of these persons leads to others, too, or was made of the address of requests; it is not "
            "named here, as what a run says is stored",
            where=config.request,
            next_step=Remedy("name the persons on the terminal, which quotes the value: ", GoOnForgetting()),
        ) from None


job = operation(
    "forget",
    ForgetConfig,
    forget,
    description="Forget the persons of a request for good: they leave the landing zone and all tables, and stay away",
)
