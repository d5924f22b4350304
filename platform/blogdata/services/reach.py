"""Who reaches the parts of a deployment, on this machine and beyond, and may do what: looked up, not assumed.

Addresses are those on which the processes really listen, and rights of folders those that the file system has.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from blogdata.services import dagster_home, postgres, spark_connect
from blogdata.services.config import Settings

_OWNER = "do everything that the owner may"


def lines(settings: Settings) -> Iterator[str]:
    """Say for each part of a deployment that is there who reaches it, with what, and may what."""
    for name, pid, who in (
        ("Spark Connect", spark_connect.status(settings).pid, f"whoever has the token in the home may {_OWNER}"),
        ("Spark Connect of roles", spark_connect.status(spark_connect.of_roles(settings)).pid, "the same"),
        ("PostgreSQL", postgres.status(settings).pid, "a login with its password may do what it is granted"),
    ):
        if pid:
            yield f"{name}: {_from(_listening(pid))}; {who}"
    address = dagster_home.bound_address(settings.home / "dagster")
    if address is not None:
        host = urlsplit(f"//{address}").hostname or ""
        who = (
            "whoever has the token in the home may launch, wipe and backfill, unless it is served with --read-only; "
            "whoever has that for events may have what is stale computed"
        )
        yield f"Dagster's UI: {_from({host})}; {who}"
    for name, folder in (("home", settings.home), ("lake", settings.lake), ("landing zone", settings.landing)):
        if "://" not in str(folder) and folder.is_dir():
            yield f"{name}: {_of_folder(folder)}"


def _listening(pid: int) -> set[str]:
    """Return the addresses on which a process or a child of it waits for connections."""
    try:
        process = psutil.Process(pid)
        family = {process.pid, *(each.pid for each in process.children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()
    # Of the whole machine: a process in a user namespace does not show its own.
    found = [one for one in psutil.net_connections(kind="tcp") if one.pid in family]
    return {one.laddr.ip for one in found if one.laddr and one.status == psutil.CONN_LISTEN}


def _from(addresses: set[str]) -> str:
    beyond = sorted(address for address in addresses if not _is_of_machine(address))
    if not addresses:
        return "where it listens cannot be seen"
    return f"from beyond this machine, at {', '.join(beyond)}, without TLS" if beyond else "from this machine only"


def _is_of_machine(address: str) -> bool:
    try:
        return address == "localhost" or ip_address(address.removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False


def _of_folder(folder: Path) -> str:
    """Say who may list and change a folder, as far as its own permissions decide that."""
    found = folder.stat()
    mode = found.st_mode
    try:
        owner, group = folder.owner(), folder.group()
    except KeyError:
        owner, group = f"user {found.st_uid}", str(found.st_gid)
    rights = [f"{owner} may read and write"]
    for who, read, write in (
        (f"the group {group}", mode & stat.S_IXGRP, mode & stat.S_IWGRP),
        ("everybody", mode & stat.S_IXOTH, mode & stat.S_IWOTH),
    ):
        if read:
            rights.append(f"{who} may enter{' and write' if write else ''}")
    return ", ".join(rights) if len(rights) > 1 else f"{rights[0]}, nobody else may enter"
