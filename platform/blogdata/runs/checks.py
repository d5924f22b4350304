"""The checks of every dataset; the step that wrote it reports them, without a second scan of the rows.

Dagster shows no evaluation that is older than the newest rows, unless it is of their run. So a step logs all checks
before the rows; those that only the sensor `detectors` evaluates are shown again after its next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, coarser, key_of, start_of
from blogdata.contract.publication import Commit
from blogdata.errors import PlatformError, shown
from blogdata.ledger import ledger
from blogdata.ledger.faults import by_reason
from blogdata.ledger.ledger import LedgerLine
from blogdata.patterns.error_management import filter_interceptor, static_late_data_integrator
from blogdata.patterns.quality import online_observer
from blogdata.patterns.quality.online_observer import Point, jumps, observed_measures
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.planning.staleness import DEAD_LETTERS, dead_letter_error
from blogdata.runs.names import asset_key
from blogdata.runs.step import Step
from blogdata.table.faults import AuditFailed

CONTRACT, LEDGER, TOO_LATE = "contract", "ledger", "too_late"
SHARE, FILTERS, MEASURES = "share", "filters", "measures"
WAITING = "waiting"
"""Fails while partitions of a dataset wait for a person, because they failed or are held."""
_NAMED = 3
_LOOK_BACK = 4 * online_observer.PAST
"""How many partitions back to read: more than are compared, since some are missing or have too few rows."""


def newest_evaluation(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> tuple[dg.AssetCheckEvaluation, float] | None:
    """Find the newest evaluation of a check, and when it was stored; None if a run has planned it since, or never."""
    record = instance.get_latest_asset_check_evaluation_record(key)
    # Of a planned check, Dagster returns the plan as the evaluation.
    if record is None or not isinstance(record.evaluation, dg.AssetCheckEvaluation):
        return None
    return record.evaluation, record.create_timestamp


def check_specs(contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check specs of a dataset: `contract` and `ledger`, which block downstream, and those it opts into."""
    rules = [f"{rule.name}: {rule.description}" for rule in contract.rules]
    audits = [f"{audit.name}: {audit.description}" for audit in contract.audits]
    blocking = {
        CONTRACT: "Every rule of the contract holds for the published rows. " + "; ".join([*rules, *audits]),
        LEDGER: "Rows in = rows out + every row left out, with its reason; and the rows are still there",
    }
    warning: dict[str, str] = {}
    if contract.max_share is not None:
        blocking[SHARE] = f"At most {contract.max_share:.0%} of a partition's rows end here; more is no accident"
    if is_filtered(contract):
        warning[FILTERS] = "Each filter removes about the share it has removed before (warning)"
    if observed_measures(contract):
        warning[MEASURES] = "Shares of nulls are about what they were before (warning)"
    if lookback_of(contract) is not None:
        warning[TOO_LATE] = f"No rows came for partitions older than the newest {contract.runs.lookback} (warning)"
    key = asset_key(contract.dataset)
    return [
        *(dg.AssetCheckSpec(name, asset=key, blocking=True, description=text) for name, text in blocking.items()),
        *(dg.AssetCheckSpec(name, asset=key, description=text) for name, text in warning.items()),
    ]


def passed_checks(contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckEvaluation]:
    """Report the checks of a publication: `contract` passed, as it was audited before the commit; others run now."""
    rules = len(contract.rules) + len(contract.audits)
    audited = {"rules": rules, "rows_audited": commit.rows_out, "table_version": commit.version}
    lines = ledger.audit(step.lake, step.events, contract, list(commit.entries))
    return [
        _evaluation(contract, CONTRACT, passed=True, metadata=audited),
        _balance(contract, lines),
        *share_results(contract, step, commit),
        *_finality(contract, step, commit),
    ]


def _balance(contract: Contract, lines: Sequence[LedgerLine]) -> dg.AssetCheckEvaluation:
    problems = {line.entry.partition: line.problem for line in lines if line.problem}
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    figures = {
        "rows_in": sum(line.entry.rows_in for line in lines),
        "rows_out": sum(line.entry.rows_out for line in lines),
        # One number per reason: Dagster's pages show and plot numbers, and hide JSON behind a link.
        **{f"{'added' if rows < 0 else 'left_out'}/{name}": abs(rows) for name, rows in sorted(reasons.items())},
        **({"problems": dict(problems)} if problems else {}),
    }
    return _evaluation(contract, LEDGER, passed=not problems, metadata=figures)


def failed_checks(contract: Contract, error: AuditFailed) -> Iterator[dg.AssetCheckEvaluation]:
    """Report the failed checks of a refused publication, with all violations."""
    for name in (CONTRACT, LEDGER):
        texts = [
            f"{item.rule} in '{item.partition}': found {item.found} ({item.detail})"
            for item in error.violations
            if item.rule.startswith("account.") == (name == LEDGER)
        ]
        if texts:
            text = f"{len(texts)} violation(s); nothing was published"
            yield _evaluation(contract, name, passed=False, description=text, metadata={"violations": texts})


def _finality(contract: Contract, step: Step, commit: Commit) -> Iterator[dg.AssetCheckEvaluation]:
    """Count, for each final partition, the rows that arrived in its hours but were not integrated."""
    lookback = lookback_of(contract)
    if lookback is None:
        return
    arrived: Counter[str] = Counter()
    for above in step.inputs:
        for hour, entry in step.events.publications(above).items():
            arrived[coarser(hour, Grain.HOUR, lookback.grain)] += entry.rows_out
    integrated = {period: entry.rows_in for period, entry in step.events.publications(contract.dataset).items()}
    newest = newest_ended(max([*arrived, *commit.entries]), lookback.grain)
    missed = static_late_data_integrator.too_late(arrived, integrated, newest, lookback)
    texts = [f"{sum(missed.values()):,} rows came after their partition was final"] if missed else []
    figures = {"rows": sum(missed.values()), **({"by_partition": missed} if missed else {})}
    yield _warning(contract, TOO_LATE, texts, figures)


def waiting_spec(contract: Contract) -> dg.AssetCheckSpec:
    text = "No partition waits for a person: each one that failed, or is held back, was mended since"
    return dg.AssetCheckSpec(WAITING, asset=asset_key(contract.dataset), description=text)


def waiting_result(contract: Contract, waiting: Mapping[str, PlatformError]) -> dg.AssetCheckEvaluation:
    reasons = by_reason(waiting)
    texts = []
    for faults in list(reasons.values())[:_NAMED]:
        error, names = next(iter(faults.values())), [key or "the table" for key in faults]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        text = " ".join(f"{error.what} ({error.where}); {error.next_step}".split())
        texts.append(f"{', '.join(names[:_NAMED])}{more}: {text}")
    shown_reasons = {"reasons": dg.MetadataValue.md("\n\n".join(map(shown.markdown, reasons)))} if waiting else {}
    return _evaluation(
        contract,
        WAITING,
        passed=not waiting,
        description=f"waiting for a person: {'. '.join(texts)}" if waiting else None,
        metadata={"partitions": len(waiting), **shown_reasons},
    )


def is_filtered(contract: Contract) -> bool:
    return any(reason.startswith(filter_interceptor.REASON) for reason in contract.left_out)


def share_results(contract: Contract, step: Step, commit: Commit) -> Iterator[dg.AssetCheckEvaluation]:
    """Judge the share of rows that are dead letters, that each filter removes, and that lack a value."""
    if contract.max_share is not None:
        yield _share(contract, step, commit)
    measures, published, grain = observed_measures(contract), dict(commit.entries), contract.grain
    if grain is not None and commit.entries and (measures or is_filtered(contract)):
        since = key_of(start_of(min(commit.entries), grain) - _LOOK_BACK * grain.length, grain)
        published = {**step.events.publications(commit.dataset, since=since), **commit.entries}
    if is_filtered(contract):
        reasons = sorted({reason for entry in published.values() for reason in entry.reasons})
        series = {
            reason.removeprefix(filter_interceptor.REASON): online_observer.rates(published, reason)
            for reason in reasons
            if reason.startswith(filter_interceptor.REASON)
        }
        text = "'{0.name}' removed {0.found:.1%} of the rows, usual are {0.usual:.1%}"
        shares = {"shares": filter_interceptor.shares(commit.entries)}
        yield _jumps(contract, FILTERS, series, commit, text, shares)
    if measures:
        series = {name: online_observer.series(published, name) for name in measures}
        text = "{0.name} is {0.found:.1%} of the rows, usual is {0.usual:.1%}"
        yield _jumps(contract, MEASURES, series, commit, text, {})


def _share(contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckEvaluation:
    published = {**step.events.publications(commit.dataset), **commit.entries}
    letters = {part: (entry.rows_out, entry.rows_in) for part, entry in published.items()}
    faults = list(filter(None, (dead_letter_error(contract, part, letters) for part in sorted(commit.entries))))
    return _evaluation(
        contract,
        SHARE,
        passed=not faults or DEAD_LETTERS in step.accepted,
        description=f"{faults[0].where}: {faults[0].what}; {faults[0].next_step}" if faults else None,
        metadata={
            "partitions": len(faults),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _jumps(
    contract: Contract,
    name: str,
    series: Mapping[str, Sequence[Point]],
    commit: Commit,
    text: str,
    metadata: dict[str, Any],
) -> dg.AssetCheckEvaluation:
    grain = contract.grain or Grain.HOUR
    deviating = [jump for of, points in series.items() for jump in jumps(of, points, commit.entries, grain=grain)]
    deviating.sort(key=lambda jump: (jump.partition, jump.name))
    texts = [f"{jump.partition}: {text.format(jump)}" for jump in deviating[:_NAMED]]
    figures = {**metadata, "partitions": len({jump.partition for jump in deviating})}
    return _warning(contract, name, texts + ["\N{HORIZONTAL ELLIPSIS}"] * (len(deviating) > _NAMED), figures)


def _warning(contract: Contract, name: str, texts: Sequence[str], metadata: dict[str, Any]) -> dg.AssetCheckEvaluation:
    """Evaluate a check that warns, by texts; it passes without any."""
    judged = {"passed": not texts, "description": "; ".join(texts) or None, "metadata": metadata}
    return _evaluation(contract, name, severity=dg.AssetCheckSeverity.WARN, **judged)


def _evaluation(contract: Contract, name: str, **judged: Any) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(asset_key=asset_key(contract.dataset), check_name=name, **judged)
