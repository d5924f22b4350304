"""The code locations that `blogdata ui` serves: the platform's, and that of the analytics team if it is set up."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blogdata.cli.output import console
from blogdata.durable.whole_file import write_atomically

ROOT = Path(__file__).resolve().parents[3]
"""The checkout; where the package is installed, no other team has its code beside it."""
PLATFORM, ANALYTICS = "definitions", "analytics"
"""Names of the locations; the state of sensors and schedules is stored by them."""
# A socket's path has at most 103 bytes on some systems; below the folder the longest has 22.
_LONGEST_FOLDER = 80


@dataclass(frozen=True, kw_only=True)
class CodeLocation:
    """A code location, which a process of its own serves."""

    name: str
    module: str
    interpreter: str
    options: tuple[str, ...] = ()

    def command(self, path: Path) -> list[str]:
        """Return the command of its code server, which listens at a socket."""
        # Behind a code server is a further one, at a socket in the folder for temporary files.
        tied = [self.interpreter, "-m", "blogdata.services.ends_with_parent", str(path.parent)]
        server = ["dagster", "code-server", "start", "--socket", str(path), "--location-name", self.name]
        return [*tied, *server, "--log-level", "warning", "-m", self.module, *self.options]


def locations() -> list[CodeLocation]:
    found = [CodeLocation(name=PLATFORM, module="definitions", interpreter=sys.executable)]
    project = ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        console.print("the analytics team's code location is not set up, and is not served: make setup")
        return found
    # An interpreter of its own: it has none of the platform's dependencies.
    options = ("--working-directory", str(ROOT), "--use-python-environment-entry-point")
    interpreter = str(project / "interpreter")
    return [
        *found,
        CodeLocation(name=ANALYTICS, module="analytics.definitions", interpreter=interpreter, options=options),
    ]


def socket_folder(home: Path) -> Path:
    """Make a folder for the code servers' sockets that only the owner enters: they execute what they are sent."""
    parent = home / "sockets"
    if len(os.fsencode(parent)) > _LONGEST_FOLDER - len("/12345678"):
        return Path(tempfile.mkdtemp(prefix="blogdata-"))
    parent.mkdir(mode=0o700, exist_ok=True)
    # Not the same one each time: a code server may still be at the last step of the UI before.
    return Path(tempfile.mkdtemp(prefix="", dir=parent))


def answers(path: Path) -> bool:
    """Return whether a code server listens at a socket: it does so once it has loaded its definitions."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def workspace(home: Path, sockets: Mapping[str, Path]) -> Path:
    """Write the workspace by which web server and daemon find the code servers."""
    servers = [{"grpc_server": {"socket": str(path), "location_name": name}} for name, path in sockets.items()]
    file = home / "workspace.yaml"
    # JSON is YAML.
    write_atomically(file, json.dumps({"load_from": servers}, indent=1).encode())
    return file
