"""Deterministic costs of a command: imported modules, opened files and tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from lineage.recorded import risen

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_suffix(".json")
_OPENED = ("files", "folders", "tables")
_PROBE = """
import json, sys
opened, listed, tables = [], [], []
def audit(event, found):
    if event in ("open", "os.scandir", "os.listdir"):
        (opened if event == "open" else listed).append(str(found[0]))
def see(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name == "__init__" and "table_uri" in code.co_varnames:
        tables.append(str(frame.f_locals["table_uri"]))
sys.addaudithook(audit)
# The tables' own files are opened by native code, which no hook sees.
sys.setprofile(see)
from blogdata.cli.main import main
try:
    main()
except SystemExit as ended:
    if ended.code:
        raise
finally:
    sys.setprofile(None)
    print(json.dumps([sorted(sys.modules), opened, listed, tables]), file=sys.stderr)
"""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """The costs of one command.

    Args:
        own: Modules of the project, by package and separated by spaces.
        others: Number of modules of each other package; the standard library is not counted.
        files: Files opened, except code.
        folders: Folders listed, except code.
        tables: Tables opened.
    """

    own: dict[str, str]
    others: dict[str, int]
    files: int
    folders: int
    tables: int

    def more_than(self, before: Footprint) -> list[str]:
        """Describe the counts that are higher than before."""
        lines = []
        for package, modules in self.own.items():
            then, now = before.own.get(package, "").split(), modules.split()
            if new := sorted({*now} - {*then}):
                lines.append(f"{package}: {len(then)} -> {len(now)} modules, new: {', '.join(new)}")
        counted = [(f"{package}, modules", n, before.others.get(package, 0)) for package, n in self.others.items()]
        counted += [(f"{name} opened", getattr(self, name), getattr(before, name)) for name in _OPENED]
        return lines + [f"{name}: {then} -> {now}" for name, now, then in counted if now > then]


def measured(home: Path, *arguments: str) -> Footprint:
    """Run a command in a new process; return its costs."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *arguments],
        env={**os.environ, "BLOGDATA_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    modules, opened, listed, tables = json.loads(done.stderr.splitlines()[-1])
    ours = {path.stem for folder in (ROOT, ROOT / "platform") for path in folder.iterdir() if path.name[0] not in "._"}
    own: dict[str, str] = {}
    others: Counter[str] = Counter()
    for name in modules:
        package, *parts = name.split(".")
        if package in ours - sys.stdlib_module_names:
            package = ".".join([package, *parts[:1]]) if package == "blogdata" else package
            own[package] = f"{own.get(package, '')} {name.removeprefix(package)[1:]}".strip()
        elif package not in sys.stdlib_module_names and not package.startswith("_"):
            others[package] += 1
    return Footprint(
        own=own,
        others=dict(sorted(others.items())),
        files=sum(map(_is_data, opened)),
        folders=sum(map(_is_data, listed)),
        tables=len(tables),
    )


def raised(found: dict[str, Footprint], *, now: Path) -> dict[str, list[str]]:
    """Compare the costs of commands with the recorded ones.

    Args:
        found: Costs by command.
        now: File to write them to; copy it over :data:`RECORDED` to accept higher counts on purpose.

    Returns:
        The higher costs by command; other commands are omitted.
    """
    plain = {name: asdict(one) for name, one in found.items()}
    return risen(plain, record=RECORDED, now=now, more=lambda name, known: found[name].more_than(Footprint(**known)))


def _is_data(path: str) -> bool:
    code = (sys.prefix, sys.base_prefix, str(ROOT), os.environ.get("PYTHONPYCACHEPREFIX") or sys.prefix)
    return not path.startswith((*code, "/proc/", "/sys/", "/usr/share/zoneinfo"))
