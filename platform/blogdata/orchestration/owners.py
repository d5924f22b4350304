"""Identifies the owners of claims (host, process and run), and checks whether an owner is alive."""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta, timezone

from blogdata.evidence.claims import Claim
from blogdata.services import processes
from blogdata.services.processes import ProcessIdentity

LEASE = timedelta(hours=6)
"""How long a claim of another host counts: its process cannot be checked from here."""
RENEWAL = LEASE / 6
"""How often a long-running owner, such as a stream, renews its claim, so that it stays valid for other hosts."""


def this_run() -> str:
    """Return an owner id, unique per run even within one process: host, process id, process start, random suffix."""
    return f"{socket.gethostname()} {os.getpid()} {processes.identify(os.getpid()).created} {uuid.uuid4().hex[:8]}"


def alive(claim: Claim) -> bool:
    """Return whether the owner of a claim is alive; one on another host counts as alive during its lease."""
    host, pid, created, _ = claim.owner.rsplit(" ", 3)
    if host != socket.gethostname():
        return datetime.now(timezone.utc) - claim.taken_at < LEASE
    return processes.is_alive(ProcessIdentity(pid=int(pid), created=created))
