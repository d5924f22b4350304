"""Begins the log of a local table anew, with rows that were found elsewhere, or with none.

A checkpoint holds the whole state of its version, and nobody who reads from it on needs an earlier file. So the log is
begun anew in its own folder, by one rename: a process that dies before it leaves the table as it was, and one that dies
after it has nothing left to do.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from blogdata.lake.checksums import seal, sums_of
from blogdata.lake.data_files import ZSTD

_VERSION = re.compile(r"^\.?(\d{20})\.")
_BUILT = ".anew"


def begin(folder: Path) -> int:
    """Take the version from which on the log will be anew, so that no other writer commits it.

    Returns:
        The version: rows of earlier ones can be read from now on, none is added.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    while True:
        seen = [int(match[1]) for file in log.iterdir() if (match := _VERSION.match(file.name))]
        version = max(seen, default=-1) + 1
        try:
            _placeholder(log, version)
            return version
        except FileExistsError:
            continue


def complete(folder: Path, version: int, rows: pa.Table, *, partition_by: Sequence[str]) -> None:
    """Give the version its rows: all that the table has from now on.

    Args:
        version: What :func:`begin` returned.
    """
    built = _emptied(folder)
    write_deltalake(str(built), rows, partition_by=list(partition_by), writer_properties=ZSTD)
    for file in [file for file in built.rglob("*.parquet") if "_delta_log" not in file.parts[len(built.parts) :]]:
        target = folder / file.relative_to(built)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
        seal(target)
    _appear(folder, version)


def complete_empty(folder: Path, version: int, shape: Sequence[Mapping[str, Any]]) -> None:
    """Let the version have no rows.

    Args:
        version: What :func:`begin` returned.
    """
    log = _emptied(folder) / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in shape), "utf-8")
    _appear(folder, version)


def replace(folder: Path, version: int, shape: Sequence[Mapping[str, Any]]) -> None:
    """Let a table that is gone, or is older than it was, begin with an empty version that nothing had before.

    Nobody else may write the table meanwhile. A process that dies leaves the old log, none, or the new one.

    Args:
        shape: As for :func:`complete_empty`.
    """
    built = _emptied(folder)
    whole = built / "whole"
    _placeholder(whole / "_delta_log", version)
    complete_empty(whole, version, shape)
    log = folder / "_delta_log"
    if log.exists():
        log.rename(built / "older")
    (whole / "_delta_log").rename(log)
    shutil.rmtree(built)


def _placeholder(log: Path, version: int) -> None:
    log.mkdir(parents=True, exist_ok=True)
    action = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "REPAIR"}}
    with (log / f"{version:020}.json").open("x", encoding="utf-8") as commit:
        commit.write(json.dumps(action) + "\n")


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder / _BUILT, ignore_errors=True)
    return folder / _BUILT


def _appear(folder: Path, version: int) -> None:
    """Move the checkpoint of what was built into the log; from then on it is what readers see."""
    log, built = folder / "_delta_log", folder / _BUILT
    DeltaTable(str(built)).create_checkpoint()
    (built / "_delta_log" / f"{0:020}.checkpoint.parquet").rename(log / f"{version:020}.checkpoint.parquet")
    hint = json.loads((built / "_delta_log" / "_last_checkpoint").read_text("utf-8"))
    (built / "_last_checkpoint").write_text(json.dumps({**hint, "version": version}), "utf-8")
    sums_of(log / "_last_checkpoint").unlink(missing_ok=True)
    (built / "_last_checkpoint").rename(log / "_last_checkpoint")
    shutil.rmtree(built)
