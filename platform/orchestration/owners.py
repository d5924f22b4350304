"""Who claims partitions: a run of a process on a machine, and whether it is still at work."""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta, timezone

from evidence.claims import Claim
from services import processes
from services.processes import ProcessIdentity

LEASE = timedelta(hours=6)
"""How long a claim of another machine counts: nobody here can tell whether its process lives."""
RENEWAL = LEASE / 6
"""How often whoever works without an end renews its claim, so that it counts on other machines, too."""


def this_run() -> str:
    """Give a name for whoever is about to claim; two runs of one process are two."""
    return f"{socket.gethostname()} {os.getpid()} {processes.identify(os.getpid()).created} {uuid.uuid4().hex[:8]}"


def alive(claim: Claim) -> bool:
    """Tell whether the owner of a claim is still at work."""
    host, pid, created, _ = claim.owner.rsplit(" ", 3)
    if host != socket.gethostname():
        return datetime.now(timezone.utc) - claim.taken_at < LEASE
    return processes.is_alive(ProcessIdentity(pid=int(pid), created=created))
