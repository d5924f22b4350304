"""`python -m benchmarks [NAME …]`: measures, prints the figures and, with `--json`, writes them to a file.

Peers take turns, and each round reverses the order of the round before, so a machine that slows down slows all of
them: trust the ratios. Peers that do the same job must have made the same tables, or the benchmark fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Size

NAMES = ("bronze_to_gold", "warm_step", "audited_write", "one_more_hour", "sessions", "own_log")
PACKAGES = ("pyspark", "delta-spark", "dagster", "deltalake", "pyarrow")


def main(arguments: Sequence[str]) -> None:
    """Run the requested benchmarks."""
    options = _options(arguments)
    bench, documents = Bench(), []
    try:
        for name in options.names or NAMES:
            measure: Callable[[Bench, Size], Sequence[Case]] = import_module(f"benchmarks.{name}").measure
            about = _machine()
            cases = measure(bench, Size(visits=options.visits, rounds=options.rounds))
            documents.append({"name": name, "machine": about, "cases": [asdict(case) for case in cases]})
            _show(documents[-1])
    finally:
        bench.close()
    if options.json:
        options.json.write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the platform costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--visits", type=int, help="size instead of the standard one of each")
    parser.add_argument("--rounds", type=int, default=3, help="how often each peer does the job")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(list(arguments))
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    return options


def _machine() -> dict[str, str]:
    return {
        "machine": f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB",
        "load before": f"load before {os.getloadavg()[0]:.1f}",
        **{name: f"{name} {version(name)}" for name in PACKAGES},
    }


def _show(document: dict[str, Any]) -> None:
    print(f"\n{document['name']}: {', '.join(document['machine'].values())}")
    for case in document["cases"]:
        for peer, times in case["seconds"].items():
            rounds = " ".join(f"{second:.2f}" for second in times)
            print(f"  {case['name']:<32} {peer:<28} {median(times):9.2f} s   ({rounds})")
        for name, fact in case["facts"].items():
            print(f"  {case['name']:<32} {name}: {fact}")


if __name__ == "__main__":
    main(sys.argv[1:])
