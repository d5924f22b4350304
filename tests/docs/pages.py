"""Reads the documentation pages and the code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from blogdata.cli.main import app
from tools.docs import Project

ROOT = Path(__file__).parent.parent.parent
PROJECT = Project(ROOT)
"""Read once by all tests of a process that look at the code."""
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(str(file.relative_to(ROOT)) for file in sorted((ROOT / "docs").rglob("*.md"))),
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^# file: (\S+)\n")
SHOWN = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>sh|text|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
NOT_RUN = "not run: "
CODE_OF = "code: "


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return [match[2] for match in FENCE.finditer(text(page)) if match[1] == language]


def files(page: str) -> dict[str, str]:
    """Map each file that a page shows to its block."""
    named = [(match, block) for block in blocks(page, "python") if (match := FILE.match(block))]
    return {match[1]: block[match.end() :] for match, block in named}


def commands(page: str) -> list[str]:
    """List the lines of a page's shell blocks, without comments and with continued lines joined."""
    lines: list[str] = []
    for block in blocks(page, "sh"):
        # A comment follows two spaces; what follows a command in the background is the shell's.
        bare = (re.split(r"(?:^|\s{2,})# | & ", line)[0].strip() for line in block.replace("\\\n", " ").splitlines())
        lines += filter(None, bare)
    return lines


@dataclass(frozen=True, kw_only=True)
class Command:
    """A shell block of a page that a reader follows from top to bottom."""

    script: str
    shown: str | None
    not_run: str | None


def followed(page: str) -> list[Command]:
    """List the shell blocks of a page, each with the output block after it and the comment before it."""
    found: list[Command] = []
    for match in SHOWN.finditer(text(page)):
        mark = match["mark"] or ""
        if match["language"] == "sh":
            reason = mark.removeprefix(NOT_RUN) if mark.startswith(NOT_RUN) else None
            found.append(Command(script=match["text"], shown=None, not_run=reason))
        elif match["language"] == "text" and found and found[-1].shown is None:
            found[-1] = replace(found[-1], shown=match["text"])
    return found


def quoted(page: str) -> dict[str, str]:
    """Read the blocks of a page that quote code, by the file that a comment before the block names."""
    marked = ((match["mark"] or "", match["text"]) for match in SHOWN.finditer(text(page)))
    return {mark.removeprefix(CODE_OF): code for mark, code in marked if mark.startswith(CODE_OF)}


def parse(arguments: list[str]) -> None:
    """Parse the arguments at every level of the command line, executing only `--help`."""
    command: Any = typer.main.get_command(app)
    parent: Any = None
    while arguments != ["--help"]:
        context = command.make_context(command.name, list(arguments), parent=parent)
        if not isinstance(command, TyperGroup):
            return
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        parent = context
