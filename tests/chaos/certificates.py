"""The record of a campaign: every round done so far, and a certificate for each writer."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blogdata.durable.whole_file import write_atomically
from chaos.draws import Kill
from chaos.round import Done

ROOT = Path(__file__).parent.parent.parent
_CODE = ("assets", "platform", "quality", "resources", "sensors", "definitions.py", "uv.lock")


class Kept:
    """The rounds done so far, one JSON object a line.

    Args:
        folder: Folder of the rounds and the certificates.
        seed: Of the campaign.
        also: Digests of earlier code whose rounds count too, because the changes since cannot affect a row.
    """

    def __init__(self, folder: Path, seed: int, also: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._seed = seed
        self._code = code_version()
        self._counts = {self._code, *also}
        self._file = folder / "rounds.jsonl"

    @property
    def known(self) -> list[dict[str, Any]]:
        """The rounds that count for the current code."""
        if not self._file.exists():
            return []
        found = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [each for each in found if each["code"] in self._counts]

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The rounds of this seed."""
        return [each for each in self.known if each["seed"] == self._seed]

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

    def certify(self, writers: Sequence[str]) -> list[str]:
        """Write the certificates of writers over all seeds; return each as a line of text."""
        return [self._certify(writer) for writer in writers]

    def _certify(self, writer: str) -> str:
        hits = [(each, hit) for each in self.known for hit in each["hits"] if hit["kill"]["writer"] == writer]
        rounds = [each for each in self.known if any(hit["kill"]["writer"] == writer for hit in each["hits"])]
        everything = sum(len(each["hits"]) for each in rounds)
        figures = [each[how][writer] for each in rounds for how in ("differences", "counted") if writer in each[how]]
        certificate = {
            "writer": writer,
            "kills": len(hits),
            "of_attempts_after_a_kill": sum(hit["kill"]["attempt"] > 0 for _, hit in hits),
            "victims": _counts(hit["kill"]["victim"] for _, hit in hits),
            "moments": _counts(hit["kill"]["moment"] for _, hit in hits),
            "reached": _counts(hit["reached"].split(",")[0] for _, hit in hits),
            "checkpoints": _counts(hit["checkpoint"] for _, hit in hits),
            "lost": sum(each["lost"] for each in figures),
            "doubled": sum(each["doubled"] for each in figures),
            "foreign": sum(each["foreign"] for each in figures),
            "rows_compared": sum(each["compared"] for each in figures),
            "partitions_published_again_by_what_outlived_its_run": sum(each["twice"].get(writer, 0) for each in rounds),
            "problems": [problem for each in rounds for problem in each["problems"]],
            "seeds": sorted({each["seed"] for each in rounds}),
            "rounds": [f"{each['seed']}/{each['round']}" for each in rounds],
            "code": _counts(each["code"] for each, _ in hits),
            "seconds_a_kill": round(sum(each["seconds"] for each in rounds) / everything, 2) if everything else None,
            "last_round_ended_at": max((each["ended_at"] for each in rounds), default=None),
        }
        text = json.dumps(certificate, indent=1).encode() + b"\n"
        write_atomically(self._folder / f"{writer}.json", text)
        line = _line(certificate)
        write_atomically(self._folder / f"{writer}.txt", f"{line}\n".encode())
        return line


def _line(certificate: Mapping[str, Any]) -> str:
    how = ", ".join(f"{times} {victim}" for victim, times in certificate["victims"].items())
    when = ", ".join(f"{moment} {times}" for moment, times in certificate["moments"].items())
    problems = f", {len(certificate['problems'])} PROBLEMS" if certificate["problems"] else ""
    return (
        f"{certificate['writer']}: {certificate['kills']} kills ({how}; {when}), {certificate['lost']} lost, "
        f"{certificate['doubled']} doubled, {certificate['foreign']} foreign of {certificate['rows_compared']:,} rows "
        f"compared{problems}; {len(certificate['rounds'])} rounds of {_named(certificate['seeds'])}, "
        f"code {', '.join(f'{code} {times}' for code, times in certificate['code'].items()) or 'none'}"
    )


def _named(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _counts(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def code_version() -> str:
    """Return the commit, and a digest of the platform's current code."""
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
