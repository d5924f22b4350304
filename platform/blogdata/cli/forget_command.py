"""`blogdata forget`: persons leave the landing zone and all tables, and do not come back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from blogdata.cli.output import TextGrid, agreed, console, existing
from blogdata.erasure import persons as found_persons
from blogdata.erasure.journal import Erasure, Journal
from blogdata.errors import ConfigurationError, PlatformError, refuse_unknown
from blogdata.planning import clock
from blogdata.services.config import Settings
from blogdata.services.files import locked
from blogdata.suppression.identifiers import Identifiers

if TYPE_CHECKING:
    from blogdata.erasure.plan import ErasurePlan
    from blogdata.planning.snapshot import Snapshot


_LOCK = ".forgetting.lock"
"""Name of the file in the home by which one process erases at a time."""


class NotReached(PlatformError):
    """Raised when persons would stay somewhere, and nobody has said that this is known."""

    exit_code: ClassVar[int] = 2


def forget(
    users: Annotated[list[str] | None, typer.Argument(metavar="USER...", help="Ids of users")] = None,
    login: Annotated[list[str] | None, typer.Option(help="A login; who had it is found")] = None,
    email: Annotated[list[str] | None, typer.Option(help="An e-mail address; who had it is found")] = None,
    visit: Annotated[list[str] | None, typer.Option(help="Id of a visit; whose it was is found")] = None,
    address: Annotated[
        list[str] | None, typer.Option(help="A network address: all its visits and requests, whoever they were of")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Persons, one a line: a user id, or login:…, email:…, visit:…, address:…")
    ] = None,
    shared_stays: Annotated[
        bool, typer.Option("--shared-stays", help="Leave out values that other users have had, too")
    ] = False,
    leave: Annotated[
        list[str] | None, typer.Option(metavar="PLACE", help="Go on although this place is not reached")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Forget them without asking")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Only search all files for the given values; exit code 1 if any is found")
    ] = False,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="Only list the certificates of past erasures")
    ] = False,
) -> None:
    """Forget persons: show what they are known by and where they are, ask, and erase them; it cannot be undone.

    Without a person it goes on with an erasure that was interrupted.
    """
    settings = existing()
    given = Identifiers(
        user_ids=frozenset(users or ()),
        logins=frozenset(login or ()),
        emails=frozenset(email or ()),
        visit_ids=frozenset(visit or ()),
        addresses=frozenset(address or ()),
    )
    if file is not None:
        given |= found_persons.given_in(_text(file), str(file))
    from blogdata.cli import forget_shown

    if search or certificates:
        if certificates:
            forget_shown.certificates(settings)
        elif forget_shown.search(settings, given):
            raise typer.Exit(1)
        return
    # Two at once would end the erasure under each other's feet.
    with locked(settings.home / _LOCK, seconds=0):
        if not _begun(settings, given, shared_stays=shared_stays, leave=leave or [], yes=yes):
            return
        from blogdata.cli.forget_steps import go_on

        go_on(settings, Journal.of(settings), console.print)
    console.print("forgotten: they do not come back; what was done where: blogdata forget --certificates")
    forget_shown.remaining(settings)


def _begun(settings: Settings, given: Identifiers, *, shared_stays: bool, leave: list[str], yes: bool) -> bool:
    """Return whether an erasure is under way: one that was interrupted, or that of these persons, if somebody agrees.

    Raises:
        ConfigurationError: Persons are given, and another erasure has not ended.
    """
    journal = Journal.of(settings)
    if journal.under_way() is None:
        agreed_to = _asked(settings, given, shared_stays=shared_stays, leave=leave, yes=yes)
        if agreed_to is not None:
            journal.begin(agreed_to)
        return agreed_to is not None
    if given.values():
        raise ConfigurationError(
            what="another erasure has not ended",
            where=str(journal.path),
            next_step="end it first: blogdata forget, without a person; then forget these",
        )
    return True


def _asked(
    settings: Settings, given: Identifiers, *, shared_stays: bool, leave: list[str], yes: bool
) -> Erasure | None:
    """Find the persons, show the plan, and ask; None if nobody agrees."""
    from blogdata.cli.forget_steps import NEVER_COMPUTED_AGAIN
    from blogdata.erasure import plan
    from blogdata.evidence.events import EventLog
    from blogdata.lake.lake import Lake
    from blogdata.orchestration.landing import bounds_of
    from blogdata.planning.plan import Planner
    from blogdata.planning.snapshot import Snapshot
    from quality.contracts import GRAPH, LANDED
    from resources.zone import zone_of

    if not given.values():
        raise ConfigurationError(
            what="nobody is named, and no erasure is under way",
            where="blogdata forget",
            next_step="name persons: a user id, --login, --email, --visit, --address or --file",
        )
    lake = Lake(root=str(settings.lake))
    files, unreadable = found_persons.landed_files(settings.landing, bounds_of(settings))
    found = found_persons.find(settings.landing, files, given, shared_stays=shared_stays)
    if plan.derived(lake, found.unknown):
        raise ConfigurationError(
            what="an id was made of the address and the agent of requests in access logs: no landed line has it",
            where=", ".join(sorted(found.unknown)),
            next_step="give the address: --address; all requests and visits of that address are then erased",
        )
    look = Snapshot(zone_of(settings), EventLog(lake))
    planner = Planner(graph=GRAPH, look=look)
    made = plan.look(planner, files, found.persons, landed=LANDED.values(), kept=NEVER_COMPUTED_AGAIN)
    left = {**made.left, **{error.where: error.what for error in unreadable}}
    _show(settings, found, made, look)
    refuse_unknown(leave, left, where="--leave", kind="place that is not reached")
    if missed := {place: why for place, why in left.items() if place not in leave}:
        raise NotReached(
            what="the persons would stay in " + "; ".join(f"{place}: {why}" for place, why in missed.items()),
            where="blogdata forget",
            next_step="nothing was erased; remove what is named, or go on without it: "
            + " ".join(f"--leave {place}" for place in missed),
        )
    question = "forget these persons for good?"
    if not (yes or agreed(question, otherwise="nothing was erased; do it: --yes")):
        return None
    return Erasure(persons=found.persons, at=clock.now().timestamp(), registered=made.registered)


def _show(settings: Settings, found: found_persons.Found, made: ErasurePlan, look: Snapshot) -> None:
    from blogdata.planning.estimate import estimate

    of = {"users": "user_ids", "logins": "logins", "e-mails": "emails", "visits": "visit_ids", "addresses": "addresses"}
    known = [f"{len(values):,} {name}" for name, kind in of.items() if (values := getattr(found.persons, kind))]
    console.print(f"known by: {', '.join(known)}")
    if found.shared:
        console.print(f"left out, since others have had them, too: {', '.join(sorted(found.shared))}")
    if found.unknown:
        console.print(f"in no landed line, but kept away from now on: {', '.join(sorted(found.unknown))}")
    table, seconds = TextGrid(), 0.0
    for name in ("place", "partitions", "files", "rows", "seconds"):
        table.add_column(name, justify="left" if name == "place" else "right", no_wrap=True)
    for folder in found_persons.TABLES:
        counts = [lines for file, lines in made.lines.items() if file.relative_to(settings.landing).parts[0] == folder]
        if counts:
            table.add_row(f"landing/{folder}", "", f"{len(counts):,}", f"{sum(counts):,}", "")
    for dataset, rows in made.taken_out.items():
        table.add_row(dataset, "", "", f"{rows:,}", "")
    for run in made.runs.runs:
        guess = estimate(look, run)
        seconds += guess.seconds or 0.0
        shown = ["" if each is None else f"{each:,.0f}" for each in (guess.rows, guess.seconds)]
        table.add_row(run.task.main, f"{len(run.keys) or 1:,}", "", *shown)
    console.print(table)
    console.print(f"computing it again takes about {seconds:,.0f} s, by what it took before")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            what=f"the file cannot be read: {error}", where=str(file), next_step="give a text file in UTF-8"
        ) from error
