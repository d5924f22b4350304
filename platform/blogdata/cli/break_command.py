"""`blogdata break`: breaks a copy of the deployment while the user watches, and counts the rows lost: none."""

from __future__ import annotations

import random
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from blogdata.cli.output import TextGrid, agreed, console, say_json
from blogdata.errors import refuse_unknown
from blogdata.services import config
from blogdata.services.config import Settings

if TYPE_CHECKING:
    from blogdata.cli.break_figures import Figures
    from blogdata.cli.break_scenes import Scene


def break_(
    name: Annotated[
        str | None, typer.Argument(help="What to break; a menu when none is named", show_default=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Show the ways to break it")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Break the copy without asking")] = False,
    seed: Annotated[int, typer.Option(min=0, help="What is random is drawn from this")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print what happened as JSON; asks nothing")] = False,
) -> None:
    """Kill a writer, send bad or late rows, drop a field, stop a partner's clock: and see that no row is lost.

    Everything happens in a copy below $BLOGDATA_HOME/break, with a Spark server of its own.
    """
    from blogdata.cli.break_scenes import SCENES

    scenes = {scene.name: scene for scene in SCENES}
    refuse_unknown([name] if name else [], scenes, where="break", kind="way to break it")
    if listing or (name is None and not (sys.stdin.isatty() and not as_json)):
        _list(scenes, as_json=as_json)
        return
    chosen = scenes[name] if name else _menu(scenes)
    if chosen is None:
        return
    settings = config.load()
    place = settings.home / "break" / chosen.name
    question = f"{chosen.title}, in a copy of {settings.home} ({place})?"
    if not (yes or as_json or agreed(question, otherwise="nothing was broken; to break the copy: --yes")):
        # Answering no is not an error.
        raise typer.Exit(0 if sys.stdin.isatty() else 1)
    found = play(settings, chosen, seed=seed, quiet=as_json)
    if as_json:
        say_json(found)
    else:
        _show(found)
    if not found["verdict"]["fine"]:
        raise typer.Exit(1)


def play(settings: Settings, scene: Scene, *, seed: int, quiet: bool) -> dict[str, Any]:
    """Copy a deployment, bring the copy up to date, break it, and count before and after.

    Args:
        settings: Settings of the deployment, which is not changed.
        scene: How to break it.
        seed: Seed of everything random.
        quiet: Whether to print nothing meanwhile.

    Returns:
        A report of what happened, as JSON-compatible values.

    Raises:
        ConfigurationError: The scene is not possible in this deployment.
    """
    from blogdata.cli import break_copy, break_figures
    from blogdata.cli.break_scenes import Story

    scene.require(settings)
    copied = break_copy.copy(settings, scene.name, seed=seed)

    def say(text: str) -> None:
        if not quiet:
            console.print(f"  {text}")

    try:
        story = Story(settings=copied.settings, draw=random.Random(seed), say=say)
        if not quiet:
            console.print(f"{scene.title}: in {copied.settings.home}")
        if copied.simulated:
            story.narrate("nothing has landed here: a small simulated blog is broken instead")
        story.run("first the copy is brought up to date")
        before = break_figures.take(copied.settings)
        scene.play(story)
        after = break_figures.take(copied.settings)
    finally:
        copied.close()
    return {
        "name": scene.name,
        "seed": seed,
        "home": str(copied.settings.home),
        "happened": story.messages,
        "runs": story.runs,
        "before": asdict(before),
        "after": asdict(after),
        "verdict": _verdict(after),
    }


def _verdict(after: Figures) -> dict[str, Any]:
    fine = not (after.lost or after.doubled or after.problems)
    return {"fine": fine, "rows_lost": after.lost, "rows_doubled": after.doubled, "problems": list(after.problems)}


def _list(scenes: dict[str, Scene], *, as_json: bool) -> None:
    if as_json:
        say_json([{"name": scene.name, "title": scene.title} for scene in scenes.values()])
        return
    for scene in scenes.values():
        console.print(f"{scene.name:<16} {scene.title}")
    console.print("break one:  blogdata break NAME")


def _menu(scenes: dict[str, Scene]) -> Scene | None:
    offered = list(scenes.values())
    for number, scene in enumerate(offered, start=1):
        console.print(f"{number}  {scene.title}")
    answer = click.prompt("which (0 for none)", type=click.Choice([str(n) for n in range(len(offered) + 1)]))
    return offered[int(answer) - 1] if answer != "0" else None


def _show(found: dict[str, Any]) -> None:
    before, after = found["before"], found["after"]
    table = TextGrid()
    table.add_column("dataset")
    for title in ("rows in", "", "rows out", ""):
        table.add_column(title, justify="right")
    table.add_column("left out, by reason")
    for dataset, now in after["accounts"].items():
        then = before["accounts"].get(dataset, {})
        figures = [text for name in ("rows_in", "rows_out") for text in (f"{now[name]:,}", _more(then, now, name))]
        reasons = [name for name in now if name not in ("rows_in", "rows_out")]
        left = ", ".join(f"{now[name]:,} {name} {_more(then, now, name)}".strip() for name in reasons)
        table.add_row(dataset, *figures, left or "-")
    console.line()
    console.print("the ledger, and what is more or less than before:")
    console.print(table)
    new = {name: count - before["letters"].get(name, 0) for name, count in after["letters"].items()}
    letters = ", ".join(f"{count} {name}" for name, count in new.items() if count)
    console.print(f"new dead letters: {letters or 'none'}")
    if after["waiting"]:
        console.print(f"{after['waiting']} landed lines wait for their flag")
    verdict = found["verdict"]
    counts = f"{verdict['rows_lost']} rows lost, {verdict['rows_doubled']} doubled"
    style = "green" if verdict["fine"] else "red"
    console.print(f"verdict: {counts}, of {after['landed']:,} landed lines", style=style)
    for problem in verdict["problems"]:
        console.print(problem, style="red")
    console.print(f"look at it:  BLOGDATA_HOME={found['home']} blogdata ledger")


def _more(then: dict[str, int], now: dict[str, int], name: str) -> str:
    difference = now.get(name, 0) - then.get(name, 0)
    return f"{difference:+,}" if difference else ""
