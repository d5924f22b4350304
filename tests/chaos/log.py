"""The log of a campaign: every round done so far, and the totals of each writer."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chaos.draws import Kill
from chaos.round import Done

ROOT = Path(__file__).parent.parent.parent
_CODE = ("assets", "platform", "quality", "resources", "sensors", "definitions.py", "uv.lock")


class Kept:
    """The rounds done so far, one JSON object a line.

    Args:
        folder: Folder of the log.
        seed: Of the campaign.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._seed = seed
        self._code = code_version()
        self._file = folder / "rounds.jsonl"

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The rounds of this seed on the current code."""
        if not self._file.exists():
            return []
        found = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [each for each in found if (each["code"], each["seed"]) == (self._code, self._seed)]

    @property
    def hits(self) -> Counter[str]:
        """Kills by writer."""
        return Counter(hit["kill"]["writer"] for each in self.rounds for hit in each["hits"])

    @property
    def next_round(self) -> int:
        """The number of the first round not done yet."""
        return max((each["round"] for each in self.rounds), default=-1) + 1

    def keep(self, number: int, done: Done) -> None:
        """Store a round."""
        assert done.verdict is not None
        row = {
            "seed": self._seed,
            "code": self._code,
            "round": number,
            "ended_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "seconds": round(done.seconds, 1),
            "hits": [hit.as_json() for hit in done.hits],
            "missed": [kill.text for kill in done.missed],
            "differences": {name: asdict(each) for name, each in done.verdict.differences.items()},
            "counted": {name: asdict(each) for name, each in done.verdict.counted.items()},
            "versions": done.verdict.versions,
            "twice": done.verdict.twice,
            "problems": done.problems,
        }
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def totals(self, writers: Sequence[str]) -> list[str]:
        """Add up the rounds of each writer, as a line of text."""
        return [self._total(writer) for writer in writers]

    def _total(self, writer: str) -> str:
        figures = [
            each[how][writer] for each in self.rounds for how in ("differences", "counted") if writer in each[how]
        ]
        lost, doubled, foreign, rows = (
            sum(each[name] for each in figures) for name in ("lost", "doubled", "foreign", "compared")
        )
        return (
            f"{writer}: {self.hits[writer]} kills, {lost} lost, {doubled} doubled, {foreign} foreign of {rows:,} rows "
            f"compared; seed {self._seed}, code {self._code}"
        )


def code_version() -> str:
    """Return a digest of the platform's current code."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *_CODE]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    digest = hashlib.sha256()
    for name in sorted(names):
        if (ROOT / name).is_file():
            digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()[:12]


def command(kill: Kill) -> str:
    """Return the command that repeats the kills of one writer in a round."""
    return f'make chaos SEED={kill.seed} ARGS="{kill.writer} --round {kill.round}"'
