"""Reads the files of a checkpoint as Spark writes them: numbered, versioned, verified against their checksums."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.lake.checksums import mismatch


class CheckpointDamaged(PlatformError):
    """Raised when a checkpoint file is missing, or its content cannot be what Spark wrote."""


def numbered(folder: Path) -> list[tuple[int, Path]]:
    """List the files of a folder whose names are numbers, sorted by number."""
    files = [(int(file.name), file) for file in folder.glob("[0-9]*") if file.name.isdecimal()]
    return sorted(files)


def read_lines(file: Path) -> list[str]:
    """Read the lines after the version line, without empty ones.

    Raises:
        CheckpointDamaged: The file is missing or not what Spark wrote.
    """
    version, *lines = read_text(file).split("\n")
    if not version.startswith("v") or not version[1:].isdecimal():
        raise damaged(file, "does not begin with a version")
    if not any(lines):
        raise damaged(file, "ends after its first line")
    return [line for line in lines if line]


def read_text(file: Path) -> str:
    """Read a file as UTF-8 text, verified against its checksum file if there is one.

    Raises:
        CheckpointDamaged: The file is missing or not what Spark wrote.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise damaged(file, "is not there") from error
    if mismatch(file) is not None:
        raise damaged(file, "does not match its checksum")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(file, "is not text") from error


def parsed(file: Path, text: str) -> dict[str, Any]:
    """Parse a line of a file as a JSON object.

    Raises:
        CheckpointDamaged: The line is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise damaged(file, "has a line that is not JSON") from error
    if not isinstance(value, dict):
        raise damaged(file, "has a line that is not an object")
    return value


def damaged(file: Path, problem: str) -> CheckpointDamaged:
    """Build the error for a damaged checkpoint file: the problem, the file and the remedy."""
    # The greedy match finds the last such folder: a parent of the checkpoints may be named like `v1`, too.
    named = re.match(r".*/([^/]+)/v\d+/", file.as_posix())
    stream = named.group(1) if named else "NAME"
    return CheckpointDamaged(
        what=f"a file of the checkpoint {problem}",
        where=str(file),
        next_step=Remedy(
            "put it back from a copy, or begin a new checkpoint: ",
            RunStream(name=stream, new_checkpoint=True),
            " (what is published already is not published again); do not delete single files: a batch that is planned "
            "anew under its old number would be taken for done",
        ),
    )
