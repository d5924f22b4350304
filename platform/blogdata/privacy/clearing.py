"""Removes what remembers persons whose landed lines and current rows are gone: what can be made again goes unseen.

Older versions of tables with persons, copies for roles, refused batches, Spark's log and temporary files, logs of
Dagster's steps, and what killed processes left in the landing zone go whether they have a value or not: whatever is
packed in them is gone with them. Rows of the partner's outbox are needed by others, so only the persons' go. Each part
may run again after it was cut off anywhere, and has the same result then.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from deltalake.exceptions import DeltaError

from blogdata import files
from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.deliver import exports, role_folders
from blogdata.deliver.partner import TOKENS, known_as, outbox
from blogdata.errors import PlatformError
from blogdata.files import locked
from blogdata.landing import external_trigger, in_place_overwriter, passthrough_replicator
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.log_splitter import LOGS
from blogdata.landing.suppressed_lines import LOCK, splitting
from blogdata.ledger.events import EventLog
from blogdata.operate import secrets, spark_connect
from blogdata.operate.config import Settings
from blogdata.privacy.file_search import Searched, is_searched_for, search
from blogdata.runs import turns
from blogdata.runs.upkeep import BUSY
from blogdata.table import companions, expiry, members, unneeded
from blogdata.table.lake import Lake
from blogdata.table.store import plain

Note = Callable[[str, str], None]
"""Notes of a place what has to be known of it, before it is cleared."""
_LEFTOVERS = (files.PARTIAL, passthrough_replicator.STAGED, in_place_overwriter.STAGED)
_NUMBERED = re.compile(r"^(\d{20})\.")


@dataclass(frozen=True, kw_only=True)
class Clearing:
    """Clears a deployment of persons; `began` is when the erasure did, in seconds since 1970."""

    settings: Settings
    contracts: tuple[Contract, ...]
    persons: Identifiers
    began: float
    note: Note

    def clear(self) -> list[str]:
        """Clear all places, and return those that could not be cleared, with the reason."""
        of_persons = [one for one in self.contracts if any(column.singles_out for column in one.columns)]
        left = [*self._older_versions(of_persons), *self._outbox()]
        if left:
            return left
        remove_copies(self.settings, of_persons)
        self._leftovers_in_landing_zone()
        remove(self.settings.lake / "refused")
        # The folders stay: a run that is at work goes on writing there.
        for log in (self.settings.home / "dagster" / "compute_logs").rglob("*"):
            if log.is_file():
                log.unlink()
        # Whoever works with it begins again; its temporary files go with it.
        spark_connect.stop(self.settings)
        for log in (self.settings.home / "services" / "spark").rglob("*.log*"):
            log.unlink()
        return []

    @property
    def values(self) -> frozenset[str]:
        return frozenset(filter(is_searched_for, self.persons.values()))

    def _older_versions(self, contracts: Iterable[Contract]) -> Iterator[str]:
        lake = Lake(root=str(self.settings.lake))
        events = EventLog(lake)
        for contract in contracts:
            try:
                if why := self._clear_table(lake, events, contract):
                    yield f"{contract.dataset}: {why}"
            except (PlatformError, DeltaError) as error:
                yield f"{contract.dataset}: {error.what if isinstance(error, PlatformError) else 'its log is damaged'}"

    def _clear_table(self, lake: Lake, events: EventLog, contract: Contract) -> str:
        """Remove each file of a dataset with rows that the current version does not need, whatever it was kept for.

        A log with a value, as in a statement that somebody ran, begins anew with a checkpoint.

        Returns:
            Why it was not cleared; empty: it was.
        """
        dataset = contract.dataset
        if lake.folder(dataset) is None:
            self.note(dataset, "it is in an object store: have the store remove its old versions")
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
            for other in self.contracts:
                if other.appears_with == dataset:
                    companions.caught_up(lake, other.dataset)
            if members.is_pointer(lake.at(dataset, version)):
                expiry.remove(lake, dataset, keep=timedelta(0))
            files: list[Path] = []
            needed = {dataset: version, **{part.name: part.table.version() for part in lake.parts(dataset)}}
            for table, newest in needed.items():
                files += unneeded.superseded(lake, table, newest, alone_since)
                log = Path(plain(lake.path(table))) / "_delta_log"
                if search(log, self.values).traces:
                    lake.at(table, newest).create_checkpoint()
                    numbered = ((file, _NUMBERED.match(file.name)) for file in sorted(log.iterdir()))
                    files += [file for file, match in numbered if match and int(match[1]) < newest]
            unneeded.remove(files)
        return ""

    def _outbox(self) -> Iterator[str]:
        box = outbox(self.settings)
        if not box.path.exists():
            return

        try:
            with box.alone():
                if sent := box.sent(self.persons.user_ids):
                    secret = secrets.read(self.settings, TOKENS).reveal()
                    keys = ", ".join(sorted(known_as(user, secret) for user in self.persons.user_ids))
                    told = f"the partner has {sent} of their records, or may have them"
                    self.note("partner.sqlite", f"{told}: tell it to erase those of the keys {keys}")
                box.forget(self.persons.user_ids)
            box.scrub()
        except PlatformError as error:
            yield f"partner.sqlite: {error.what}"

    def _leftovers_in_landing_zone(self) -> None:
        """Remove hidden files under the platform's names; those of producers may be about to land."""
        landing, logs = self.settings.landing, self.settings.landing / LOGS
        remove(landing / external_trigger.FOLDER / external_trigger.REFUSED)
        # In this order: who lands logs waits for the list of the forgotten while alone in their folder.
        with files.alone(logs), locked(self.settings.home / LOCK), splitting(self.settings):
            for file in landing.rglob(".*"):
                # One of a load that runs now is newer, and what it lands is held against the list.
                with suppress(FileNotFoundError):
                    if file.name.endswith(_LEFTOVERS) and (logs in file.parents or file.stat().st_mtime < self.began):
                        file.unlink()


def look(settings: Settings, values: Iterable[str]) -> Searched:
    copies = {f"exports/{one.role}{one.folder}": one.folder for one in exports.known(settings)}
    return search(settings.home, values, elsewhere={"lake": settings.lake, "landing": settings.landing, **copies})


def remove_copies(settings: Settings, contracts: Iterable[Contract]) -> None:
    """Remove the copies of tables from the folder of every role; the next export writes the newest versions."""
    with exports.alone(settings):
        for export in exports.known(settings):
            for contract in contracts:
                role_folders.remove(export.folder, contract.dataset)


@contextmanager
def alone(lake: Lake, events: EventLog, contract: Contract) -> Iterator[float | None]:
    """Claim a dataset against others that publish it.

    Yields:
        The moment since which nobody else publishes it, in seconds since 1970: whoever begins later writes newer files.
        None while somebody does.
    """
    with turns.taken(lake, contract.main, [WHOLE_TABLE, *events.publications(contract.main)]) as mine:
        others = turns.claims(lake, contract.main).held().keys() - {*mine}
        # The clock of the file system may be a little behind.
        yield None if others else time.time() - 1


def remove(folder: Path) -> None:
    """Remove a folder that others may read: it goes by one rename before its files do."""
    hidden = folder.with_name(f".{folder.name}.erased")
    if folder.exists():
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
