"""The `DAGSTER_HOME` of a deployment: its storage and the policies of `deploy/dagster.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import OpenUi, Remedy
from blogdata.files import LockTimeout, locked, problem, write_atomically
from blogdata.operate.config import Settings
from blogdata.operate.jars import package_folder

if TYPE_CHECKING:
    from dagster import DagsterInstance


MENDED = (
    "free space on the disk; if a file of it is damaged, move the folder away: it has the history of the runs, and the "
    "tables tell what is published"
)
"""What to do about Dagster's files when they cannot be read or written."""
PLATFORM, ANALYTICS = "definitions", "analytics"
"""Names of the code locations; the state of sensors and schedules is stored by them."""
_OPENING_SECONDS = 120.0
UI = "ui.lock"
"""File that the process which serves the UI locks; it has the address."""
UI_TOKEN = "ui"
"""Name of the secret that signs browsers in, and that programs send to the UI."""


def render(settings: Settings) -> Path:
    """Write `dagster.yaml` for a deployment, and return the folder to use as `DAGSTER_HOME`."""
    folder = settings.home / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    kind = "sqlite" if settings.dagster_storage is None else "postgresql"
    template, storage = (
        (package_folder("blogdata") / "deploy" / name).read_text(encoding="utf-8")
        for name in ("dagster.yaml", f"dagster-{kind}.yaml")
    )
    template = template.replace("{storage}\n", storage)
    # A quoted YAML scalar escapes a path as JSON does.
    content = template.replace("{home}", json.dumps(str(settings.home), ensure_ascii=False)[1:-1]).encode()
    target = folder / "dagster.yaml"
    if not target.is_file() or target.read_bytes() != content:
        write_atomically(target, content)
    return folder


def ui_address(home: Path) -> str | None:
    """Return the address, as http://…, where the UI of a deployment is served now; None: nowhere."""
    file = home / UI
    if not file.exists():
        return None
    try:
        with locked(file, seconds=0):
            return None
    except LockTimeout:
        # A server at all addresses is reached at this one.
        address = file.read_text(encoding="utf-8")
        return "http://" + address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")


@contextmanager
def serving(home: Path, address: str) -> Iterator[None]:
    """Lock the UI of a deployment: two daemons would conflict over its sensors; the error names the first's address."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(home / UI, seconds=0))
        except LockTimeout as error:
            raise ConfigurationError(
                what=f"the UI of this deployment is already served at {ui_address(home)}",
                where=str(home.parent),
                next_step=Remedy("open it: ", OpenUi(), "; or end it first"),
            ) from error
        file = home / UI
        file.write_text(address, encoding="utf-8")
        try:
            yield
        finally:
            # A process that is killed leaves it.
            file.write_text("", encoding="utf-8")


def workspace_file(home: Path, sockets: Mapping[str, Path]) -> Path:
    """Write the workspace by which web server and daemon find the code servers."""
    servers = [{"grpc_server": {"socket": str(path), "location_name": name}} for name, path in sockets.items()]
    file = home / "workspace.yaml"
    # JSON is YAML.
    write_atomically(file, json.dumps({"load_from": servers}, indent=1).encode())
    return file


def storage(settings: Settings) -> str:
    """Return where Dagster's runs and events are stored: a folder, or an address without its password."""
    if settings.dagster_storage is None:
        return str(settings.home / "dagster")
    # Most commands do not load it.
    from sqlalchemy.engine import make_url

    return make_url(settings.dagster_storage).render_as_string()


def damaged(settings: Settings, *, whole: bool = True) -> list[tuple[Path, str]]:
    """Read Dagster's SQLite files (runs, index of events, schedules); return the damaged ones with their problems."""
    if settings.dagster_storage is not None:
        return []
    folder = settings.home / "dagster"
    files = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")
    existing = [folder / name for name in files if (folder / name).exists()]
    return [(file, fault) for file in existing if (fault := problem(file, whole=whole))]


def open_instance(settings: Settings) -> DagsterInstance:
    # Imported here, because it takes seconds: commands that only need the folder do not wait for it.
    from dagster import DagsterInstance

    home = render(settings)
    # Two processes that open the storage for the first time at once would both create its tables.
    with locked(home / "lock", seconds=_OPENING_SECONDS):
        return DagsterInstance.from_config(str(home))


HEALTH = "/healthz"
"""Path of the UI's web server that answers everyone with one word: 200 while the daemon is at work, else 503."""
PROCESS_SECONDS = 120.0
"""Age of the newest heartbeat from which the process is dead or hangs: each of its threads leaves one in 30 s."""
THREAD_SECONDS = 1800.0
"""Age of the oldest one from which a thread hangs; one evaluation of a sensor may take minutes."""


def is_beating(instance: DagsterInstance, now: float) -> bool:
    heartbeats = instance.get_daemon_heartbeats()
    required = instance.get_required_daemon_types()
    if not required or any(kind not in heartbeats for kind in required):
        return False
    ages = [now - heartbeats[kind].timestamp for kind in required]
    return min(ages) <= PROCESS_SECONDS and max(ages) <= THREAD_SECONDS
