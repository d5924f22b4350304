"""`blogdata rotate`: everything that follows from a key is computed again, by another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import agreed, console, existing
from blogdata.cli.plan_command import show
from blogdata.cli.run_command import say
from blogdata.errors import PlatformError, refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from quality.contracts.keys import FOLLOWS, behind

if TYPE_CHECKING:
    from blogdata.planning.plan import Planner
    from blogdata.publish.contract import Wanted
    from blogdata.services.config import Settings


class NotRotated(PlatformError):
    """Raised when partitions would keep, or have kept, what follows from an earlier key."""


def rotate(
    key: Annotated[str, typer.Argument(help="Name of the key: " + " or ".join(FOLLOWS))],
    yes: Annotated[bool, typer.Option("--yes", help="Rotate it without asking")] = False,
) -> None:
    """Make another version of a key, and compute everything again that follows from it; show the plan, and ask.

    If published rows follow from another key than the current one, because a rotation was interrupted or somebody
    replaced the key, no version is made: the rest is computed again by the current one.
    """
    from blogdata.cli.pipeline import FROZEN, Pipeline
    from blogdata.orchestration import keys

    refuse_unknown([key], FOLLOWS, where="rotate", kind="key")
    settings = existing()
    current, planner = keys.current(settings, key), _planner(settings)
    left = behind(planner.look, key, current.mark)
    wanted = left or behind(planner.look, key, None)
    _require_computable(planner, wanted)
    plan = planner.plan_of_replay(_with_stale(planner, wanted))
    if left:
        console.print(f"{_count(left)} partitions follow from another key than version {current.version} of {key}:")
    else:
        console.print(f"version {current.version + 1} of {key} is made, and what follows from it is computed again:")
    show(plan.runs, planner.look, nothing="nothing that is published follows from it")
    if not (yes or agreed("rotate it?", otherwise="nothing was changed; to rotate it: --yes")):
        return
    if not left:
        keys.renew(settings, key, current)
    lifted = frozenset({keys.ROTATING, FROZEN})
    outcome = Pipeline(settings, command="blogdata rotate", lifted=lifted).run_plan(plan) if plan.runs else None
    if outcome is not None:
        say(outcome)
    current = keys.current(settings, key)
    if rest := behind(_planner(settings).look, key, current.mark):
        raise NotRotated(
            what=f"{_count(rest)} partitions still follow from an earlier key: {', '.join(rest)}",
            where=key,
            next_step=f"see to what is named above, then go on: blogdata rotate {key}",
        )
    console.print(
        f"all published rows follow from version {current.version} of {key}; earlier versions of the tables still do "
        "from earlier ones, until their files are removed"
    )
    if outcome is not None and not outcome.ok:
        raise typer.Exit(1)


def _with_stale(planner: Planner, wanted: Wanted) -> Wanted:
    """Add published partitions that are stale: others are computed from what an interrupted rotation leaves of them."""
    from blogdata.planning.plan import STALE

    stale = {
        main: {key: STALE for key in keys if key in planner.look.published(main)}
        for main, keys in planner.all_stale().items()
    }
    return {name: {**stale.get(name, {}), **wanted.get(name, {})} for name in {*stale, *wanted}}


def _planner(settings: Settings) -> Planner:
    from blogdata.planning.plan import Planner
    from blogdata.planning.snapshot import Snapshot
    from quality.contracts import GRAPH
    from resources.zone import zone_of

    return Planner(graph=GRAPH, look=Snapshot(zone_of(settings), EventLog(Lake(root=str(settings.lake)))))


def _require_computable(planner: Planner, wanted: Wanted) -> None:
    """Refuse a rotation after which some partitions would still follow from the earlier key."""
    for dataset, found in wanted.items():
        if expired := planner.expired(planner.graph.task_of(dataset), found):
            first = min(expired)
            raise NotRotated(
                what=f"{len(expired)} partitions of {dataset} cannot be computed again, {first} for one: "
                f"{expired[first].what}",
                where=dataset,
                next_step="nothing was changed; have these rows expire, too, or keep the key",
            )


def _count(wanted: Wanted) -> str:
    return f"{sum(map(len, wanted.values())):,}"
