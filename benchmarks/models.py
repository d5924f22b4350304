"""(o) Models of page views: the same questions to normalized tables, to a star and to One Big Table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.deployment import Bench, RunFailed
from benchmarks.measure import Case, Peer, Ratio, Result, Size, interleaved, ratio, say
from benchmarks.same import ResultsDiffer
from blogdata.cli.pipeline import Pipeline
from blogdata.lake import arrow
from blogdata.lake.lake import Lake
from quality.contracts.visits_model import DEVICES, HOSTS, SITES, STAR_HOSTS, VIEWS

STANDARD_VISITS = 500_000
DAYS = 7
"""A whole week: models have no other."""
OBT = "gold.visits_obt"
NORMALIZED, STAR, BIG = "normalized", "star", "One Big Table"
DEVICE = f"JOIN {DEVICES} USING (device_type, device_version)"
HOST = f"JOIN {STAR_HOSTS} USING (referral_host)"
SITE = f"JOIN {HOSTS} USING (referral_host) JOIN {SITES} USING (site)"
QUESTIONS = {
    "views by kind of site": ("kind", {NORMALIZED: SITE, STAR: HOST, BIG: ""}),
    "views by day, kind of site and device": (
        "event_date, kind, device_name",
        {NORMALIZED: f"{SITE} {DEVICE}", STAR: f"{HOST} {DEVICE}", BIG: ""},
    ),
}
"""Question to what is grouped by, and to the joins of each model."""


def measure(bench: Bench, size: Size) -> Result:
    """Measure with about this many page views in a week."""
    visits = size.visits or STANDARD_VISITS
    say(f"a week of {visits:,} page views, {size.rounds} rounds")
    made = bench.deployment("models", landing=bench.simulated(visits, days=DAYS))
    outcome = Pipeline(made.settings, quiet=True).run(for_=[OBT])
    if not outcome.ok:
        raise RunFailed(what="; ".join(outcome.problems), where=str(made.settings.home), next_step="see blogdata plan")
    lake = Lake(root=str(made.settings.lake))
    tables = (VIEWS, DEVICES, HOSTS, SITES, STAR_HOSTS, OBT)
    for name in tables:
        lake.read(bench.spark, name).createOrReplaceTempView(_view(name))
    facts = {"tables": {name: _size(lake, name) for name in tables}}
    cases = [
        Case(name=question, seconds=seconds, ratios=_ratios(seconds), facts=facts if number == 0 else {})
        for number, (question, how) in enumerate(QUESTIONS.items())
        for seconds in [_asked(bench.spark, *how, size.rounds)]
    ]
    made.leave()
    return Result(letter="o", title="Models of page views", cases=cases)


def _asked(spark: Any, by: str, joins: Mapping[str, str], rounds: int) -> dict[str, list[float]]:
    queries = {
        model: _view(
            f"SELECT {by}, sum(views) FROM {OBT if model == BIG else VIEWS} {joined} GROUP BY {by} ORDER BY ALL"
        )
        for model, joined in joins.items()
    }
    answers = {model: spark.sql(query).collect() for model, query in queries.items()}
    if not answers[NORMALIZED] == answers[STAR] == answers[BIG]:
        raise ResultsDiffer(what="the models give different answers", where=by, next_step="compare their rows")
    peers = [Peer(name=model, run=_ask(spark, query)) for model, query in queries.items()]
    return interleaved(peers, rounds, warm_ups=2)


def _ask(spark: Any, query: str) -> Callable[[int], object]:
    return lambda _: spark.sql(query).collect()


def _ratios(seconds: Mapping[str, Sequence[float]]) -> list[Ratio]:
    return [ratio(seconds, NORMALIZED, BIG), ratio(seconds, STAR, BIG)]


def _view(text: str) -> str:
    return text.replace("gold.", "gold_")


def _size(lake: Lake, dataset: str) -> dict[str, int]:
    table = lake.table(dataset)
    assert table is not None
    files = arrow.rows_of(table.get_add_actions(flatten=True), ["num_records", "size_bytes"])
    return {"rows": sum(file["num_records"] for file in files), "bytes": sum(file["size_bytes"] for file in files)}
