"""`python -m mutants [NAME PART …]`: applies each seeded defect to a copy of the project and runs its tests there.

Prints a line for each, stores results in a file so that an interrupted campaign continues, and exits with 1 if a defect
was not noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from mutants.mutant import Mutant
from mutants.seeded import MUTANTS

ROOT = Path(__file__).parent.parent.parent
KNOWN = ROOT / "var" / "mutants.json"


def main(parts: Sequence[str]) -> int:
    """Try all mutants, or those whose name contains one of some parts."""
    chosen = [mutant for mutant in MUTANTS if not parts or any(part in mutant.name for part in parts)]
    state = _state()
    known = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.is_file() else {}
    if known.get("state") != state:
        known = {"state": state, "noticed": {}}
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number, mutant in enumerate(chosen, start=1):
            label = f"[{number}/{len(chosen)}] {mutant.name}"
            if mutant.name in known["noticed"] and not parts:
                print(f"{label}: noticed before")
                continue
            started = time.monotonic()
            failed, output = _try(mutant, Path(folder) / f"copy-{number}")
            seconds = time.monotonic() - started
            if failed:
                print(f"{label}: noticed by {failed[0]} ({seconds:.0f} s)", flush=True)
                known["noticed"][mutant.name] = failed
                KNOWN.parent.mkdir(exist_ok=True)
                KNOWN.write_text(json.dumps(known, indent=1), encoding="utf-8")
            else:
                print(f"{label}: NOT NOTICED, no test failed ({seconds:.0f} s)\n{output[-3000:]}", flush=True)
                survivors.append(mutant.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} noticed")
    return 1 if survivors else 0


def _files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def _state() -> str:
    # Results are valid for the same code only.
    digest = hashlib.sha256()
    for name in sorted(_files()):
        if (ROOT / name).is_file():
            digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


def _try(mutant: Mutant, copy: Path) -> tuple[list[str], str]:
    for name in _files():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    apply(mutant, copy)
    return failed_tests(copy, mutant.noticed_by)


def failed_tests(project: Path, tests: Sequence[str]) -> tuple[list[str], str]:
    """Run tests of a copy of the project up to the first failure.

    Args:
        project: The copy.
        tests: Tests to run, as pytest arguments.

    Returns:
        The failed tests, and pytest's output. A test whose fixtures raised an error does not count: an engine that does
            not compile, for instance, was not noticed by a test.
    """
    # Before the installed project, whose path is in a .pth file of the environment.
    paths = os.pathsep.join(str(project / part) for part in ("platform", "", "tests"))
    report = project / "report.xml"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    # The suite runs only part of each matrix; the failing case may be in the other part.
    environment = {**os.environ, "PYTHONPATH": paths, "WHOLE_MATRIX": "1"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    cases = ElementTree.parse(report).iter("testcase") if report.is_file() else ()
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if case.find("failure") is not None]
    return failed, done.stdout + done.stderr


def apply(mutant: Mutant, root: Path) -> None:
    """Apply the change of a mutant to a copy of the project."""
    file = root / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.name}: its text is not in {mutant.file} exactly once"
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
