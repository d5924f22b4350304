"""Repairs a table with damaged files from its other files.

Nothing is guessed: what the other files do not contain is invalidated in the event log, so that the next run computes
it again from the layer above.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Repair, Run
from blogdata.evidence.damage import CHECKPOINT, COMMIT, Damage, DamageKind, damage_of, log_of, versions
from blogdata.evidence.events import EventLog
from blogdata.lake import log_anew, members
from blogdata.lake.checksums import seal, sums_of
from blogdata.lake.lake import Lake
from blogdata.lake.members import Members
from blogdata.lake.store_faults import LogDamaged
from blogdata.publish.contract import Contract

DAMAGED_SUFFIX = ".damaged"
"""Suffix of damaged files that were put aside; they are not deleted."""
_REPAIR = '"operation": "REPAIR"'
"""Part of a commit that replaces a lost one."""
_SHAPE = {"protocol": "protocol", "metaData": "metadata"}
"""What a commit says of the table itself, and how Delta's digest of a version names it."""
_MARKS = ".bin"
"""Suffix of deletion vectors."""


class BeyondMending(LogDamaged):
    """What a damaged file of a log contained cannot be derived from the other files."""


class ConcurrentRepair(PlatformError):
    """Another run published a dataset during its repair."""

    transient = True


def mend(lake: Lake, events: EventLog, contract: Contract, damages: Sequence[Damage]) -> Sequence[str]:
    """Repair a table from its other files; mark what they do not contain to be computed again.

    Args:
        damages: What :func:`blogdata.evidence.damage.inspect` found.

    Returns:
        The repairs made, one sentence each.

    Raises:
        BeyondMending: The content of the damaged file cannot be derived from the rest of the table, and the rows
            cannot be computed again from other tables.
        ConcurrentRepair: Another run published the dataset meanwhile; transient.
    """
    try:
        done = _with_the_log(lake, events, contract, damages)
    except BeyondMending:
        if not _is_computed(contract) or not (shape := shape_of(log_of(lake, contract.dataset))):
            raise
        return [_begun_anew(lake, events, contract, shape)]
    partitions = dict.fromkeys(damage.partition for damage in damages if damage.partition is not None)
    if not partitions:
        return done
    if contract.executed is not None:
        events.take_back(contract.dataset)
        return [*done, "all executions are to be computed again, from the first one on: they build on one another"]
    for dataset in {contract.dataset, contract.appears_with or contract.dataset}:
        events.take_back(dataset, partitions=partitions)
    return [*done, *(f"{f'partition {key!r}' if key else 'all of it'} is to be computed again" for key in partitions)]


def _with_the_log(lake: Lake, events: EventLog, contract: Contract, damages: Sequence[Damage]) -> list[str]:
    """Repair the files that the other files of the log tell of."""
    log, done, lost = log_of(lake, contract.dataset), [], []
    # The log is read again only after all of its files are repaired, so lost versions are handled below.
    for damage in damages:
        if damage.partition is not None:
            if damage.file.suffix == _MARKS:
                # Nothing tells that it is of an old version by then.
                put_aside(damage.file)
            continue
        if damage.kind is DamageKind.CHECKSUMS:
            seal(damage.file.with_name(damage.file.name[1:].removesuffix(".crc")))
            done.append(f"{damage.file.name} was written again: the file itself can be read")
        elif damage.kind is DamageKind.DERIVED:
            put_aside(damage.file)
            done.append(f"{damage.file.name} was put aside: it is derived from the commits")
        elif damage.kind is DamageKind.CHECKPOINT:
            _without_checkpoint(contract.dataset, log, damage)
            done.append(f"{damage.file.name} was put aside: the commits tell the same")
        elif damage.kind is DamageKind.COMMIT and (covered := _versions_in_checkpoints(log, damage.version)):
            put_aside(damage.file, placeholder=damage.version in covered)
            done.append(f"{damage.file.name} was put aside: a checkpoint tells the newest version")
        elif damage.kind is DamageKind.POINTER and damage.version == 0:
            done.append(_emptied(lake, events, contract))
        else:
            _without_commit(contract.dataset, log, damage)
            lost.append(damage.version)
    return done + [_taken_back(events, contract, version) for version in lost]


def _is_computed(contract: Contract) -> bool:
    """Return whether all rows can be computed again from other tables, and lie in a table with a log of its own."""
    return contract.layer != "bronze" and contract.appears_with is None and contract.replaced_kept is None


def shape_of(log: Path) -> list[dict[str, Any]]:
    """Find the actions with the protocol and the schema of a table, in a commit or in a digest that Delta has of a
    version.
    """
    found: dict[str, Any] = {}
    for file in sorted(log.glob("[0-9]*.crc"), reverse=True):
        digest = {} if damage_of(file) else json.loads(file.read_text("utf-8"))
        found = {**{name: digest[own] for name, own in _SHAPE.items() if own in digest}, **found}
    for file, _ in versions(log, COMMIT)[::-1]:
        for line in [] if damage_of(file) else file.read_text("utf-8").splitlines():
            found = {**{name: action for name, action in json.loads(line).items() if name in _SHAPE}, **found}
    return [{name: found[name]} for name in _SHAPE] if len(found) == len(_SHAPE) else []


def _begun_anew(lake: Lake, events: EventLog, contract: Contract, shape: Sequence[dict[str, Any]]) -> str:
    log = log_of(lake, contract.dataset)
    # First: if this process dies, what is taken back is computed again all the same.
    events.begin_anew(contract.dataset)
    version, recorded = log_anew.begin(log.parent), events.recorded(contract.dataset)
    for file, older in versions(log, COMMIT):
        if recorded < older < version:
            # It is not to be recorded later: its rows are gone.
            put_aside(file)
    log_anew.complete_empty(log.parent, version, shape)
    for file, older in [*versions(log, COMMIT), *versions(log, CHECKPOINT)]:
        if older < version and damage_of(file):
            put_aside(file)
    return f"the log cannot be mended, so that it begins anew with version {version}: all of it is to be computed again"


def _taken_back(events: EventLog, contract: Contract, version: int) -> str:
    taken_back = ", ".join(key or "all of it" for key in events.take_back(contract.dataset, lost=version))
    if contract.appears_with and not taken_back:
        return (
            f"version {version} now is what version {version - 1} was; {contract.appears_with} has told the rest again"
        )
    missing = "whatever the next run finds missing; what was run again on purpose, ask for it once more"
    return f"version {version} now is what version {version - 1} was; to be computed again: {taken_back or missing}"


def _emptied(lake: Lake, events: EventLog, contract: Contract) -> str:
    """Empty a pointer of which no version can be read."""
    table = lake.table(contract.dataset)
    assert table is not None
    state = Members(version=table.version(), all=())
    if members.commit(lake, contract.dataset, state, [], {"commit_id": f"{contract.dataset}/repair"}) is None:
        raise ConcurrentRepair(
            what="the dataset was published while its pointer was about to be mended",
            where=contract.dataset,
            next_step=Remedy("look at it again: ", Repair()),
        )
    events.take_back(contract.dataset)
    return "the pointer names no table now: all of it is to be computed again"


def _without_checkpoint(dataset: str, log: Path, damage: Damage) -> None:
    older = [version for _, version in versions(log, CHECKPOINT) if version < damage.version]
    _must_have_commits(dataset, log, max(older, default=-1) + 1, damage.version)
    put_aside(damage.file)
    # This file names the newest checkpoint; without it readers search for one.
    for hint in (log / "_last_checkpoint", sums_of(log / "_last_checkpoint")):
        hint.unlink(missing_ok=True)


def _versions_in_checkpoints(log: Path, version: int) -> list[int]:
    return [covered for _, covered in versions(log, CHECKPOINT) if covered >= version]


def _without_commit(dataset: str, log: Path, damage: Damage) -> None:
    file = log / f"{damage.version:020}.json"
    later = [other for other, version in versions(log, COMMIT) if version > damage.version]
    if damage.version == 0 or any(_REPAIR not in other.read_text("utf-8") for other in later):
        why = "it is the first one" if damage.version == 0 else "later versions are built upon it"
        raise _beyond_mending(dataset, damage.file, why)
    for checkpoint, version in versions(log, CHECKPOINT):
        if version >= damage.version:
            _without_checkpoint(dataset, log, replace(damage, file=checkpoint))
    put_aside(file, placeholder=True)


def _must_have_commits(dataset: str, log: Path, first: int, last: int) -> None:
    for version in range(first, last + 1):
        file = log / f"{version:020}.json"
        if not file.exists():
            raise _beyond_mending(dataset, file, "the commits before the checkpoint are not there any more")


def put_aside(file: Path, *, placeholder: bool = False) -> None:
    """Rename a damaged file, if it is there, and forget its checksums."""
    if file.exists():
        file.rename(file.with_name(file.name + DAMAGED_SUFFIX))
    sums_of(file).unlink(missing_ok=True)
    # Delta's digest of the version.
    for digest in (file.with_suffix(".crc"), sums_of(file.with_suffix(".crc"))):
        digest.unlink(missing_ok=True)
    if placeholder:
        # The version stays in use, so that no later publication is taken for the lost one.
        now = int(time.time() * 1000)
        file.write_text(f'{{"commitInfo": {{"timestamp": {now}, {_REPAIR}, "operationParameters": {{}}}}}}\n', "utf-8")


def _beyond_mending(dataset: str, file: Path, why: str) -> BeyondMending:
    return BeyondMending(
        what=f"the table cannot be told from the rest of its log: {why}",
        where=f"{dataset}, {file}",
        next_step=Remedy(
            "bring the file back from a backup; or, if all of it is in the landing zone still, move the folder of the "
            "table away and run: ",
            Run(),
        ),
    )
