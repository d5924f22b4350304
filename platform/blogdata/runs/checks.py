"""The checks of every dataset; the step that wrote it reports them, without a second scan of the rows.

Dagster shows no evaluation that is older than the newest rows, unless it is of their run. So a step logs all checks
before the rows; those that only the sensor `detectors` evaluates are shown again after its next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, coarser, key_of, start_of
from blogdata.contract.publication import Commit, Entry
from blogdata.errors import PlatformError, shown
from blogdata.ledger import ledger
from blogdata.ledger.faults import by_reason
from blogdata.ledger.ledger import LedgerLine
from blogdata.patterns.error_management import filter_interceptor, static_late_data_integrator
from blogdata.patterns.quality import online_observer
from blogdata.patterns.quality.online_observer import Jump, jumps, observed_measures
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.planning.staleness import DEAD_LETTERS, dead_letter_error
from blogdata.runs.names import asset_key
from blogdata.runs.run_values import table
from blogdata.runs.step import Step
from blogdata.table.write_faults import AuditFailed

CONTRACT, LEDGER, TOO_LATE = "contract", "ledger", "too_late"
WAITING = "waiting"
"""Fails while partitions of a dataset wait for a person, because they failed or are held."""
_NAMED = 5
_REASONS = 3


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
    audited = {
        "rules": len(contract.rules) + len(contract.audits),
        "rows_audited": commit.rows_out,
        "table_version": commit.version,
    }
    lines = ledger.audit(step.lake, step.events, contract, list(commit.entries))
    return [
        _evaluation(contract, CONTRACT, passed=True, metadata=audited),
        _balance(contract, lines),
        *share_results(contract, step, commit),
        *measure_results(contract, step, commit),
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
    accounts = [item for item in error.violations if item.rule.startswith("account.")]
    rules = [item for item in error.violations if not item.rule.startswith("account.")]
    for name, found in ((CONTRACT, rules), (LEDGER, accounts)):
        if found:
            texts = [f"{item.rule} in '{item.partition}': found {item.found} ({item.detail})" for item in found]
            yield _evaluation(
                contract,
                name,
                passed=False,
                description=f"{len(found)} violation(s); nothing was published",
                metadata={"violations": texts},
            )


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
    yield _warning(
        contract,
        TOO_LATE,
        [f"{sum(missed.values()):,} rows came after their partition was final"] if missed else [],
        {"rows": sum(missed.values()), **({"by_partition": missed} if missed else {})},
    )


def waiting_spec(contract: Contract) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        WAITING,
        asset=asset_key(contract.dataset),
        description="No partition waits for a person: each one that failed, or is held back, was mended since",
    )


def waiting_result(contract: Contract, waiting: Mapping[str, PlatformError]) -> dg.AssetCheckEvaluation:
    reasons = by_reason(waiting)
    return _evaluation(
        contract,
        WAITING,
        passed=not waiting,
        description=f"waiting for a person: {_text(reasons)}" if waiting else None,
        metadata={
            "partitions": len(waiting),
            **({"reasons": dg.MetadataValue.md("\n\n".join(map(shown.markdown, reasons)))} if waiting else {}),
        },
    )


def _text(reasons: Mapping[str, Mapping[str, PlatformError]]) -> str:
    lines = []
    for faults in list(reasons.values())[:_REASONS]:
        error, more = next(iter(faults.values())), f" and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        named = ", ".join(key or "the table" for key in list(faults)[:_NAMED]) + more
        lines.append(f"{named}: {' '.join(f'{error.what} ({error.where}); {error.next_step}'.split())}")
    return ". ".join([*lines, *([f"{len(reasons) - _REASONS} more reasons"] if len(reasons) > _REASONS else [])])


SHARE, FILTERS, MEASURES = "share", "filters", "measures"
_SHOWN, _LISTED = 3, 100
_LOOK_BACK = 4 * online_observer.PAST
"""How many partitions back to read: more than are compared, since some are missing or have too few rows."""


def share_results(contract: Contract, step: Step, commit: Commit) -> Iterator[dg.AssetCheckEvaluation]:
    if contract.max_share is not None:
        yield _share(contract, step, commit)
    if is_filtered(contract):
        yield _filters(contract, step, commit)


def is_filtered(contract: Contract) -> bool:
    return any(reason.startswith(filter_interceptor.REASON) for reason in contract.left_out)


def _share(contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckEvaluation:
    published = {**step.events.publications(commit.dataset), **commit.entries}
    letters = {part: (entry.rows_out, entry.rows_in) for part, entry in published.items()}
    faults = [dead_letter_error(contract, part, letters) for part in sorted(commit.entries)]
    found = [fault for fault in faults if fault is not None]
    return _evaluation(
        contract,
        SHARE,
        passed=not found or DEAD_LETTERS in step.accepted,
        description=f"{found[0].where}: {found[0].what}; {found[0].next_step}" if found else None,
        metadata={
            "partitions": len(found),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _filters(contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckEvaluation:
    published, grain = _with_history(contract, step, commit)
    reasons = {reason for entry in published.values() for reason in entry.reasons}
    found = [
        jump
        for reason in sorted(reasons)
        if (name := reason.removeprefix(filter_interceptor.REASON)) != reason
        for jump in jumps(name, online_observer.rates(published, reason), commit.entries, grain=grain)
    ]
    shares = {"shares": filter_interceptor.shares(commit.entries)}
    text = "'{0.name}' removed {0.found:.1%} of the rows, usual are {0.usual:.1%}"
    return _jumps(contract, FILTERS, found, text, shares)


def measure_results(contract: Contract, step: Step, commit: Commit) -> Iterator[dg.AssetCheckEvaluation]:
    names = online_observer.observed_measures(contract)
    if not names:
        return
    published, grain = _with_history(contract, step, commit)
    found = [
        jump
        for name in names
        for jump in jumps(name, online_observer.series(published, name), commit.entries, grain=grain)
    ]
    yield _jumps(contract, MEASURES, found, "{0.name} is {0.found:.1%} of the rows, usual is {0.usual:.1%}", {})


def _with_history(contract: Contract, step: Step, commit: Commit) -> tuple[dict[str, Entry], Grain]:
    """Return a commit's entries together with earlier publications to compare them with; a whole table has none."""
    if contract.grain is None or not commit.entries:
        return dict(commit.entries), contract.grain or Grain.HOUR
    since = key_of(start_of(min(commit.entries), contract.grain) - _LOOK_BACK * contract.grain.length, contract.grain)
    return {**step.events.publications(commit.dataset, since=since), **commit.entries}, contract.grain


def _jumps(
    contract: Contract, name: str, found: Iterable[Jump], text: str, metadata: dict[str, Any]
) -> dg.AssetCheckEvaluation:
    """Warn of jumps: the first 3 in the description, the first 100 in a table."""
    ordered = sorted(found, key=lambda jump: (jump.partition, jump.name))
    texts = [f"{jump.partition}: {text.format(jump)}" for jump in ordered[:_SHOWN]]
    rows = [
        {"partition": jump.partition, "measure": jump.name, "found": f"{jump.found:.1%}", "usual": f"{jump.usual:.1%}"}
        for jump in ordered[:_LISTED]
    ]
    figures = {**metadata, "partitions": len({jump.partition for jump in ordered}), **table("jumps", rows)}
    return _warning(contract, name, texts + ["\N{HORIZONTAL ELLIPSIS}"] * (len(ordered) > _SHOWN), figures)


def _warning(contract: Contract, name: str, texts: Sequence[str], metadata: dict[str, Any]) -> dg.AssetCheckEvaluation:
    """Evaluate a check that warns, by texts; it passes without any."""
    return _evaluation(
        contract,
        name,
        passed=not texts,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(texts) or None,
        metadata=metadata,
    )


def _evaluation(contract: Contract, name: str, **judged: Any) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(asset_key=asset_key(contract.dataset), check_name=name, **judged)
