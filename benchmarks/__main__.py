"""`python -m benchmarks [a|…|v|all]`: measures, prints and stores the figures, writes docs/reference/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine, page, tables
from benchmarks.deployment import Bench
from benchmarks.measure import Result, Size
from blogdata.errors import PlatformError

MODULES = {
    "a": "bronze_to_gold",
    "b": "chained_assets",
    "c": "audited_write",
    "d": "one_more_hour",
    "e": "duckdb_peer",
    "f": "replaced_week",
    "g": "late_hours",
    "h": "merged_rows",
    "i": "partner_modes",
    "j": "months_visitors",
    "k": "hot_key",
    "l": "hourly_sessions",
    "m": "profiles",
    "n": "layouts",
    "o": "models",
    "p": "small_files",
    "r": "returning_visitors",
    "s": "shared_visits",
    "t": "role_rights",
    "u": "forgotten_persons",
    "v": "wide_column",
}
STANDARD_DAYS = (1, 10, 100)
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str]) -> int:
    """Run the requested benchmarks; the exit code is 0 whether targets are met or not."""
    options = _options(arguments)
    size = Size(visits=options.visits, rounds=options.rounds, days=options.days)
    bench = Bench()
    documents = []
    try:
        for letter in MODULES if options.which == "all" else options.which:
            # Each benchmark imports its own peers; DuckDB is needed only where it is measured.
            measure: Callable[[Bench, Size], Result] = import_module(f"benchmarks.{MODULES[letter]}").measure
            about = machine.describe(bench.settings)
            result = measure(bench, size)
            document = {
                **result.as_json(),
                "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "rounds": options.rounds,
                "machine": about,
            }
            tables.show(document)
            documents.append(document)
            _keep(documents, options.json, standard=options.visits is None and options.days == STANDARD_DAYS)
    except PlatformError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        bench.close()
    return 0


def _options(arguments: Sequence[str]) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure against hand-written peers.")
    parser.add_argument("which", nargs="?", default="all", choices=[*MODULES, "all"], help="which one; all by default")
    parser.add_argument("--visits", type=int, help="size instead of the standard sizes; then docs are not written")
    parser.add_argument("--rounds", type=int, default=3, help="how often each peer does the job")
    parser.add_argument("--days", type=_numbers, default=STANDARD_DAYS, help="days of history of (d): 1,10,100")
    parser.add_argument("--json", type=Path, help="write the figures to this file only")
    return parser.parse_args(list(arguments))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _keep(documents: Sequence[dict[str, Any]], file: Path | None, *, standard: bool) -> None:
    if file is not None:
        file.write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")
    elif standard:
        for document in documents:
            text = json.dumps(document, indent=1) + "\n"
            (RESULTS / f"{document['letter']}.json").write_text(text, encoding="utf-8")
        page.write(RESULTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
