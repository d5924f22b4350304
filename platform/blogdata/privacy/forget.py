"""Forgetting: persons leave the landing zone and all tables, and do not come back.

It is no job of Dagster, whose storage keeps the configuration of a run and its log: these would name the persons.

While an erasure is under way, its journal (`forgetting.json` of the home) has the persons' values as they are: steps
search for them after no table has them any more. The journal is gone when the erasure has ended. What stays is a
certificate with keyed hashes of the persons and no value: only with the key can it be shown that somebody was erased.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets.stream_inputs import streamed_inputs
from blogdata.deliver import serving
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import GoOnForgetting, Remedy, Run
from blogdata.files import locked, write_atomically
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.lines import Bounds
from blogdata.landing.suppression_list import SuppressionList, erase_known
from blogdata.ledger.events import EventLog
from blogdata.operate import spark_attached
from blogdata.operate.config import Settings
from blogdata.planning import clock
from blogdata.planning.plan import Planner
from blogdata.privacy import clearing, persons
from blogdata.privacy import erasure_plan as plan
from blogdata.privacy.erased_rows import PLACES, Rows, TakingOut, UnusedAddresses, without_landed_files
from blogdata.privacy.erasure_plan import ErasurePlan, built_anew
from blogdata.privacy.file_search import is_searched_for
from blogdata.privacy.persons import landed_files
from blogdata.runs.zone import snapshot_of
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext
from quality.contracts import CONTRACTS, GRAPH, LANDED

FILE = "forgetting.json"
"""Name of the journal in the home."""
CERTIFICATES = "erasure_certificates"
"""Folder of the home with a file for each erasure that has ended."""
_FILES_AT_ONCE = 100
"""Landed files that are overwritten while other runs wait to read theirs."""
_NAMED = 5
COMPUTED = "computed again"
"""What the step has done that computes again what was computed from their lines."""


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """An erasure under way; times are seconds since 1970."""

    persons: Identifiers
    at: float
    registered: float | None = None
    """The newest time at which any of them registered; None: unknown."""
    done: Mapping[str, float] = field(default_factory=dict)
    """Names of the steps that are done, to when they were."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Place to what has to be known of it afterwards."""


@dataclass(frozen=True)
class Journal:
    """The journal of a deployment: of one erasure at a time."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / FILE

    def under_way(self) -> Erasure | None:
        if not self.path.exists():
            return None
        record = json.loads(self.path.read_bytes())
        persons = {kind: frozenset(values) for kind, values in record.pop("persons").items()}
        return Erasure(persons=Identifiers(**persons), **record)

    def write(self, erasure: Erasure) -> None:
        """Record an erasure as it is now; on the disk when it returns."""
        for cut_off in self.home.glob(f".{FILE}.*"):
            cut_off.unlink()
        persons = {kind: sorted(values) for kind, values in erasure.persons.by_kind().items()}
        write_atomically(self.path, json.dumps({**asdict(erasure), "persons": persons}).encode())

    def finish(self, step: str) -> None:
        erasure = self.known()
        self.write(replace(erasure, done={**erasure.done, step: clock.now().timestamp()}))

    def note(self, place: str, text: str) -> None:
        """Record what is about to be cleared: the first note stays, since a resumed erasure finds only the rest."""
        erasure = self.known()
        self.write(replace(erasure, notes={place: text, **erasure.notes}))

    def end(self, certificate: Mapping[str, Any]) -> Path:
        folder = self.home / CERTIFICATES
        folder.mkdir(exist_ok=True)
        file = folder / f"{certificate['erasure']}.json"
        write_atomically(file, json.dumps(certificate, indent=1).encode())
        self.path.unlink()
        return file

    def known(self) -> Erasure:
        erasure = self.under_way()
        assert erasure is not None
        return erasure


def suppress(settings: Settings, erasure: Erasure) -> None:
    """Put the persons on the list that keeps landing lines from bringing them back."""
    SuppressionList.of(settings).add(erasure.persons, erasure.at, erasure.registered)


def overwrite(settings: Settings, erasure: Erasure) -> None:
    """Overwrite the landed lines of all persons on the list."""
    files, _ = landed_files(settings.landing, Bounds.of(settings))
    for first in range(0, len(files), _FILES_AT_ONCE):
        erase_known(settings, settings.landing, files[first : first + _FILES_AT_ONCE])


def take_out(settings: Settings, erasure: Erasure) -> None:
    """Take the persons out of what is not computed from landed files any more: streams, hours without files."""
    taking = _taking(settings, erasure, Rows)
    gone = without_landed_files(snapshot_of(settings))
    left = [why for dataset, keys in gone.items() for why in taking.of_dataset(LANDED[dataset], keys)]
    streams = streamed_inputs(settings.checkpoints)
    left += [why for stream in streams for why in taking.of_stream(stream)]
    names = {stream.name for stream in streams}
    for folder in settings.checkpoints.iterdir() if settings.checkpoints.is_dir() else ():
        if folder.is_dir() and folder.name not in names:
            clearing.remove(folder)
    _require_cleared(left)


def recompute(settings: Settings, erasure: Erasure, runs: Any) -> None:
    """Compute all that was computed from these lines again, by the plan that knows what is stale."""
    look = snapshot_of(settings)
    published = [name for name in CONTRACTS if look.published(name)]
    outcome = runs.run(for_=[*published, *serving.configured(settings)])
    if (anew := built_anew(_planner(settings))).runs:
        outcome = runs.run_plan(anew)
    planner = _planner(settings)
    look, plan = planner.look, planner.outstanding()
    wanted = [(main, key) for main, keys in plan.wanted().items() for key in keys or [""]]
    behind = [f"{main} {key}".rstrip() for main, key in wanted if key in look.published(main)]
    behind += [error.where for error in plan.refused if look.published(error.where)]
    if behind:
        more = f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
        raise PlatformError(
            what=f"published partitions were not computed again: {', '.join(behind[:_NAMED])}{more}; "
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
        _require_cleared(_taking(settings, erasure, UnusedAddresses).of_dataset(PLACES))


def clear(settings: Settings, erasure: Erasure) -> None:
    """Clear all that remembers the persons besides landed files and newest versions."""
    note = Journal(settings.home).note
    _require_cleared(clearing.clear(settings, erasure.persons, since=erasure.at, note=note))


def certificate(settings: Settings, erasure: Erasure) -> Mapping[str, Any]:
    """Search everything, and say what was done, what was searched and what was found; never a value."""
    from assets.code_version import version

    values = frozenset(filter(is_searched_for, erasure.persons.values()))
    searched = clearing.look(settings, values)
    return {
        "erasure": f"{datetime.fromtimestamp(erasure.at, timezone.utc):%Y-%m-%dT%H:%M:%S.%f}",
        "issued_at": clock.now().isoformat(),
        "code_version": version(),
        "persons": SuppressionList.of(settings).hashes(erasure.persons),
        "done": [*erasure.done],
        "notes": dict(erasure.notes),
        "files_searched": searched.files,
        "files_with_values": {path: how for path, how in searched.traces.items() if path != FILE},
        "not_searched": dict(searched.unsearched),
        "values_too_short_to_search": len(erasure.persons.values() - values),
    }


def _taking(settings: Settings, erasure: Erasure, rows: type[Rows]) -> TakingOut:
    from assets.code_version import version

    events = EventLog(Lake(root=str(settings.lake)))
    return TakingOut(
        rows=rows(events=events, landing=settings.landing, persons=erasure.persons, logs=settings.logs),
        run=RunContext(run_id=f"forget-{uuid.uuid4()}", job="forget", code_version=version(), trigger="forget"),
        spark=partial(spark_attached.guarded, settings),
    )


def _require_cleared(left: Iterable[str]) -> None:
    if why := "; ".join(left):
        raise PlatformError(
            what=f"it could not be cleared everywhere; {why}",
            where="forget",
            next_step=Remedy("see to what is named, then go on here: ", GoOnForgetting()),
        )


def _planner(settings: Settings) -> Planner:
    return Planner(graph=GRAPH, look=snapshot_of(settings))


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
"""What a step has done, to the step; the one that computes takes what runs the lineage, too."""


def go_on(settings: Settings, say: Callable[[str], None], runs: Any) -> Mapping[str, Any]:
    """Do the steps that are not done of the erasure under way, and end it; returns its certificate."""
    journal = Journal(settings.home)
    for name, step in STEPS.items():
        if name not in journal.known().done:
            step(settings, journal.known(), *([runs] if name == COMPUTED else []))
            journal.finish(name)
            say(name)
    issued = certificate(settings, journal.known())
    say(f"certificate: {journal.end(issued)}")
    return issued


def begin(settings: Settings, planned: ErasurePlan) -> None:
    """Record the erasure; from now on it only goes forward."""
    now = clock.now().timestamp()
    Journal(settings.home).write(Erasure(persons=planned.match.persons, at=now, registered=planned.registered))


def alone(settings: Settings) -> AbstractContextManager[None]:
    """Be the only process that erases."""
    return locked(settings.home / ".forgetting.lock", seconds=0)


def is_under_way(settings: Settings, given: Identifiers) -> bool:
    """Return whether an erasure of these persons has begun and not ended; without persons: whether any has."""
    journal = Journal(settings.home)
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
    """Find persons, and plan their erasure."""
    files, unreadable = persons.landed_files(settings.landing, Bounds.of(settings))
    match = persons.find(settings.landing, files, given, shared_stays=shared_stays)
    lake, ids = Lake(root=str(settings.lake)), pa.array(sorted(match.unknown), pa.string())
    visits = lake.columns("silver.visits", ("user_id", "visit_id")) if match.unknown else pa.table({})
    if any(pc.any(pc.is_in(column.cast(pa.string()), ids)).as_py() for column in visits.columns):
        raise ConfigurationError(
            what="an id was made of the address and the agent of requests in access logs: no landed line has it",
            where=", ".join(sorted(match.unknown)),
            next_step="give the address: all requests and visits of that address are then erased",
        )
    made = plan.look(_planner(settings), files, match, logs=settings.logs)
    return replace(made, left={**made.left, **{error.where: error.what for error in unreadable}})
