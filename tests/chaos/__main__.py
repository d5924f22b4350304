"""`python -m chaos [WRITER …] [-n KILLS] [--seed SEED]`: kills every writer N times, and compares what is left.

Rounds already done with the same seed and code are skipped. Exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from chaos import log
from chaos.bench import Bench
from chaos.draws import WRITERS, drawn
from chaos.log import ROOT, Kept
from chaos.round import Done, Hit, Round, is_empty

RESULTS = ROOT / "var" / "chaos"
WORLDS_EVERY = 12
"""Rounds after which everything is compared in another world, on another server."""
HEAP = "3g"
"""Enough for a world's rounds: half a thousand runs are killed in them."""


def main(arguments: Sequence[str]) -> int:
    """Run a campaign, or repeat one kill."""
    given = _parsed(arguments)
    for variable in [name for name in os.environ if name.startswith(("BLOGDATA_", "SPARK_", "DAGSTER_"))]:
        if variable not in ("BLOGDATA_JARS", "BLOGDATA_JAVA", "BLOGDATA_MAVEN_MIRROR"):
            del os.environ[variable]
    writers = given.writers or WRITERS
    kept = Kept(RESULTS, given.seed)
    if given.round is not None:
        return _repeat(given.seed, given.round, writers)
    fine = _campaign(kept, given.seed, given.kills, writers)
    for line in kept.totals(writers):
        print(line)
    return 0 if fine else 1


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description="Kill every writer, and see what is left.")
    parser.add_argument("writers", nargs="*", metavar="WRITER", help="datasets; default: all")
    parser.add_argument("-n", "--kills", type=int, default=10, help="kills of each writer")
    parser.add_argument("--seed", type=int, default=1, help="what everything is drawn from")
    parser.add_argument("--round", type=int, help="repeat the kills of this round only, and leave everything there")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.writers) - {*WRITERS})
    if unknown:
        parser.error(f"no writer is called {', '.join(unknown)}")
    if given.kills < 1 or given.seed < 0:
        parser.error("KILLS must be 1 or more, SEED 0 or more")
    return given


def _campaign(kept: Kept, seed: int, kills: int, writers: Sequence[str]) -> bool:
    fine = not any(each["problems"] for each in kept.rounds)
    left = _left(kept, kills, writers)
    while left:
        number = kept.next_round
        folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        print(f"world {number // WORLDS_EVERY}: {folder}, {sum(left.values())} kills to go", flush=True)
        bench = Bench.create(folder / "bench", _world(seed, number), heap=HEAP, archive=RESULTS, spares=True)
        whole = True
        try:
            while left and _world(seed, kept.next_round) == _world(seed, number):
                whole = _one(bench, kept, seed, list(left)) and whole
                left = _left(kept, kills, writers)
        except BaseException:
            whole = False
            print(f"cut off; what there is stays in {folder}", flush=True)
            raise
        finally:
            bench.servers.stop()
            if whole:
                shutil.rmtree(folder, ignore_errors=True)
        fine = fine and whole
    return fine


def _one(bench: Bench, kept: Kept, seed: int, writers: Sequence[str]) -> bool:
    number = kept.next_round
    began = time.monotonic()
    done = Round(bench, number, drawn(seed, number, writers), empty=is_empty(seed, number), tell=_tell).run()
    kept.keep(number, done)
    _say(number, done, time.monotonic() - began)
    if not done.problems:
        shutil.rmtree(bench.folder / "rounds" / str(number), ignore_errors=True)
    return not done.problems


def _repeat(seed: int, number: int, writers: Sequence[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"round {number} in {folder}", flush=True)
    bench = Bench.create(folder / "bench", _world(seed, number), heap=HEAP, archive=RESULTS)
    try:
        began = time.monotonic()
        done = Round(bench, number, drawn(seed, number, writers), empty=is_empty(seed, number), tell=_tell).run()
    finally:
        bench.servers.stop()
    _say(number, done, time.monotonic() - began)
    return 1 if done.problems else 0


def _tell(hit: Hit) -> None:
    more = "" if hit.checkpoint in ("none", "not yet") else f", checkpoint {hit.checkpoint}"
    print(f"  {hit.kill.text:<60} {hit.seconds:>5.1f} s  it was {hit.reached}{more}", flush=True)


def _say(number: int, done: Done, seconds: float) -> None:
    for kill in done.missed:
        print(f"  {kill.text:<60} too late, it had ended")
    assert done.verdict is not None
    rows = sum(each.compared for each in done.verdict.differences.values())
    pace = f"{seconds / len(done.hits):.1f} s a kill" if done.hits else "nothing was hit"
    print(f"round {number}: {len(done.hits)} kills, {pace}; {rows:,} rows and {done.verdict.versions} versions read")
    for problem in done.problems:
        print(f"  PROBLEM {problem}")
    if done.problems:
        print("  one writer's kills alone are repeated by one of these:")
        for line in dict.fromkeys(log.command(hit.kill) for hit in done.hits):
            print(f"    {line}")
    sys.stdout.flush()


def _left(kept: Kept, kills: int, writers: Sequence[str]) -> dict[str, int]:
    done = kept.hits
    return {writer: kills - done[writer] for writer in writers if done[writer] < kills}


def _world(seed: int, number: int) -> int:
    return seed * 1000 + number // WORLDS_EVERY


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
