"""Removes whatever may still have values of erased persons, once their landed lines and current rows are gone.

That is: older versions and logs of tables with persons, copies for staging, refused batches, Spark's log and temporary
files, logs of Dagster's steps, and what killed processes left in the landing zone. Of the partner's outbox only the
persons' rows go. Each part may run again after it was cut off anywhere, and has the same result then.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from deltalake.exceptions import DeltaError

from blogdata import files
from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.deliver import staging
from blogdata.deliver.partner import TOKENS, known_as, outbox
from blogdata.errors import PlatformError
from blogdata.files import locked
from blogdata.landing import external_trigger, in_place_overwriter, passthrough_replicator
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.log_splitter import LOGS
from blogdata.landing.suppression_list import LOCK, splitting
from blogdata.ledger.events import EventLog
from blogdata.operate import secrets, spark_connect
from blogdata.operate.config import Settings
from blogdata.privacy.file_search import Searched, is_searched_for, search
from blogdata.runs import turns
from blogdata.runs.upkeep import BUSY
from blogdata.table import companions, expiry, members, unneeded
from blogdata.table.lake import Lake
from blogdata.table.store import plain
from quality.contracts import EVERY

_LEFTOVERS = (files.PARTIAL, passthrough_replicator.STAGED, in_place_overwriter.STAGED)
_NUMBERED = re.compile(r"^(\d{20})\.")


Note = Callable[[str, str], None]
"""Records a place, and what has to be known of it once it is cleared."""


def clear(settings: Settings, persons: Identifiers, *, since: float, note: Note) -> list[str]:
    """Clear all places, and return those that could not be cleared, with the reason; `since` is when it began."""
    left = [*_older_versions(settings, persons, note), *_outbox(settings, persons.user_ids, note)]
    if left:
        return left
    staging.remove(settings)
    _leftovers_in_landing_zone(settings, since)
    remove(settings.lake / "refused")
    # The folders stay: a run that is at work goes on writing there.
    for log in (settings.home / "dagster" / "compute_logs").rglob("*"):
        if log.is_file():
            log.unlink()
    # Its temporary files go with it.
    spark_connect.stop(settings)
    for log in (settings.home / "services" / "spark").rglob("*.log*"):
        log.unlink()
    return []


def _older_versions(settings: Settings, persons: Identifiers, note: Note) -> Iterator[str]:
    events = EventLog(Lake(root=str(settings.lake)))
    values = frozenset(filter(is_searched_for, persons.values()))
    for contract in EVERY.values():
        try:
            if why := _clear_table(events, contract, values, note):
                yield f"{contract.dataset}: {why}"
        except (PlatformError, DeltaError) as error:
            yield f"{contract.dataset}: {error.what if isinstance(error, PlatformError) else 'its log is damaged'}"


def _clear_table(events: EventLog, contract: Contract, values: Collection[str], note: Note) -> str:
    """Remove what the current version of a dataset does not need; return why not.

    A log with a value, as in a statement that somebody ran, begins anew with a checkpoint.
    """
    lake, dataset = events.lake, contract.dataset
    if not any(column.singles_out for column in contract.columns):
        return ""
    if lake.folder(dataset) is None:
        note(dataset, "it is in an object store: have the store remove its old versions")
        return ""
    if lake.caught_up(dataset) is None:
        return ""
    with alone(lake, events, contract) as alone_since:
        if alone_since is None:
            return BUSY
        version = lake.version(dataset)
        if version is None or version < events.recorded(dataset):
            return "its log has lost versions: compute it again first"
        read = {name: events.publications(name).get(WHOLE_TABLE) for name in contract.feeds}
        if late := [name for name, entry in read.items() if entry and entry.inputs[dataset] < version]:
            return f"{', '.join(late)} has not read what changed in it: compute it first"
        for other in EVERY.values():
            if other.appears_with == dataset:
                companions.caught_up(lake, other.dataset)
        if members.is_pointer(lake.at(dataset, version)):
            expiry.remove(lake, dataset, keep=timedelta(0))
        files: list[Path] = []
        needed = {dataset: version, **{part.name: part.table.version() for part in lake.parts(dataset)}}
        for table, newest in needed.items():
            files += unneeded.superseded(lake, table, newest, alone_since)
            log = Path(plain(lake.path(table))) / "_delta_log"
            if search(log, values).traces:
                lake.at(table, newest).create_checkpoint()
                numbered = ((file, _NUMBERED.match(file.name)) for file in sorted(log.iterdir()))
                files += [file for file, match in numbered if match and int(match[1]) < newest]
        unneeded.remove(files)
    return ""


def _outbox(settings: Settings, users: Collection[str], note: Note) -> Iterator[str]:
    box = outbox(settings)
    if not box.path.exists():
        return
    try:
        with box.alone():
            if sent := box.sent(users):
                secret = secrets.read(settings, TOKENS).reveal()
                keys = ", ".join(sorted(known_as(user, secret) for user in users))
                what = f"the partner has {sent} of their records, or may have them"
                note("partner.sqlite", f"{what}: tell it to erase those of the keys {keys}")
            box.forget(users)
        box.scrub()
    except PlatformError as error:
        yield f"partner.sqlite: {error.what}"


def _leftovers_in_landing_zone(settings: Settings, since: float) -> None:
    """Remove hidden files under the platform's names; those of producers may be about to land."""
    landing, logs = settings.landing, settings.landing / LOGS
    remove(landing / external_trigger.FOLDER / external_trigger.REFUSED)
    # In this order: landing waits for the list of the forgotten while it is alone in the folder of logs.
    with files.alone(logs), locked(settings.home / LOCK), splitting(settings):
        for file in landing.rglob(".*"):
            # One of a load under way is newer, and what it lands is held against the list.
            with suppress(FileNotFoundError):
                if file.name.endswith(_LEFTOVERS) and (logs in file.parents or file.stat().st_mtime < since):
                    file.unlink()


def look(settings: Settings, values: Iterable[str]) -> Searched:
    elsewhere = {"lake": settings.lake, "landing": settings.landing}
    if settings.staging is not None:
        elsewhere["staging"] = settings.staging.folder
    return search(settings.home, values, elsewhere=elsewhere)


@contextmanager
def alone(lake: Lake, events: EventLog, contract: Contract) -> Iterator[float | None]:
    """Claim a dataset; yields the moment since which nobody else publishes it, in seconds since 1970, or None."""
    with turns.taken(lake, contract.main, [WHOLE_TABLE, *events.publications(contract.main)]) as claimed:
        others = turns.claims(lake, contract.main).held().keys() - {*claimed}
        # The clock of the file system may be a little behind.
        yield None if others else time.time() - 1


def remove(folder: Path) -> None:
    """Remove a folder that others may read: it goes by one rename before its files do."""
    hidden = folder.with_name(f".{folder.name}.erased")
    if folder.exists():
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
