"""The checks of every dataset; the step that wrote it reports them, without a second scan of the rows.

Dagster shows no evaluation that is older than the newest rows, unless it is of their run. So a step logs all checks
before the rows; those that only the sensor `detectors` evaluates are carried over until its next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import dagster as dg

from blogdata.errors import PlatformError, shown
from blogdata.evidence import ledger
from blogdata.evidence.ledger import LedgerLine
from blogdata.lake.commit import Commit
from blogdata.orchestration.completeness import complete_results, complete_specs
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.shares import FILTERS, MEASURES, SHARE, is_filtered, measure_results, share_results
from blogdata.orchestration.step import Step
from blogdata.patterns.error_management import static_late_data_integrator
from blogdata.patterns.observability import skew_detector
from blogdata.patterns.observability.reading import FLOW, LAG, SKEW, SLA, first
from blogdata.patterns.quality.online_observer import observed_measures
from blogdata.planning import detectors
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.planning.faults import by_reason
from blogdata.publish.audit import warnings
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, coarser, key_of, start_of
from blogdata.publish.write_faults import AuditFailed

CONTRACT, LEDGER, AUDITS, TOO_LATE = "contract", "ledger", "audits", "too_late"
WAITING = "waiting"
"""Fails while partitions of a dataset wait for a person, because they failed or are held."""
CARRIED = "as_before_the_publication"
"""Metadata of an evaluation that was carried over: the sensor makes another one."""
_NAMED = 5
_REASONS = 3


def skew_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Compare a publication, and the newest day, with comparable earlier partitions, from the ledger.

    Dagster shows only the newest evaluation: a run of another day would otherwise hide what stands.
    """
    if contract.watch.skew is None or contract.grain is None or not commit.entries:
        return []
    # The level of the week before the oldest comparable partition is needed, too.
    begin = start_of(min(commit.entries), contract.grain) - timedelta(weeks=skew_detector.WEEKS + 1)
    since = key_of(begin, contract.grain)
    published = {**step.events.publications(commit.dataset, since=since), **commit.entries}
    reading, found = detectors.skew(contract, published, commit.entries)
    skewed = [one for one in found if one.verdict]
    return [
        dg.AssetCheckResult(
            check_name=SKEW,
            asset_key=key,
            passed=not skewed,
            severity=dg.AssetCheckSeverity.WARN,
            description=first([str(one) for one in skewed]) or (reading.what if not found else None),
            metadata={
                "partitions": len({one.partition for one in skewed}),
                "judged": len({one.partition for one in found}),
            },
        )
    ]


def finality_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Count, for each final partition, the rows that arrived in its hours but were not integrated."""
    lookback = lookback_of(contract)
    if lookback is None:
        return []
    arrived: Counter[str] = Counter()
    for above in step.inputs:
        for hour, entry in step.events.publications(above).items():
            arrived[coarser(hour, Grain.HOUR, lookback.grain)] += entry.rows_out
    integrated = {period: entry.rows_in for period, entry in step.events.publications(contract.dataset).items()}
    newest = newest_ended(max([*arrived, *commit.entries]), lookback.grain)
    missed = static_late_data_integrator.too_late(arrived, integrated, newest, lookback)
    return [
        dg.AssetCheckResult(
            check_name=TOO_LATE,
            asset_key=key,
            passed=not missed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"rows": sum(missed.values()), **({"by_partition": missed} if missed else {})},
            description=f"{sum(missed.values()):,} rows came after their partition was final" if missed else None,
        )
    ]


def audit_warning_results(key: dg.AssetKey, contract: Contract, commit: Commit) -> list[dg.AssetCheckResult]:
    if not contract.audits:
        return []
    failed = {part: names for part, entry in sorted(commit.entries.items()) if (names := warnings(entry))}
    lifted = commit.info.get("lifted", [])
    named = "; ".join(f"{part or 'the table'}: {', '.join(names)}" for part, names in list(failed.items())[:_NAMED])
    return [
        dg.AssetCheckResult(
            check_name=AUDITS,
            asset_key=key,
            passed=not failed,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"published all the same: {named}" if failed else None,
            metadata={"partitions": len(failed), **({"lifted_by_a_person": lifted} if lifted else {})},
        )
    ]


def newest_evaluation(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> tuple[dg.AssetCheckEvaluation, float] | None:
    """Find the newest evaluation of a check, and when it was stored; None if a run has planned it since, or never."""
    record = instance.get_latest_asset_check_evaluation_record(key)
    # Of a planned check, Dagster returns the plan as the evaluation.
    if record is None or not isinstance(record.evaluation, dg.AssetCheckEvaluation):
        return None
    return record.evaluation, record.create_timestamp


def check_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check specs of a dataset: `contract` and `ledger`, which block downstream, and those it opts into."""
    rules = [f"{rule.name}: {rule.description}" for rule in contract.rules]
    audits = [f"{audit.name}: {audit.description}" for audit in contract.audits]
    blocking = {
        CONTRACT: "Every rule of the contract holds for the published rows. " + "; ".join([*rules, *audits]),
        LEDGER: "Rows in = rows out + every row left out, with its reason; and the rows are still there",
    }
    warning: dict[str, str] = {}
    if audits:
        warning[AUDITS] = "No partition was published with a failed audit (warning): " + "; ".join(audits)
    if contract.max_share is not None:
        blocking[SHARE] = f"At most {contract.max_share:.0%} of a partition's rows end here; more is no accident"
    if is_filtered(contract):
        warning[FILTERS] = "Each filter removes about the share it has removed before (warning)"
    if observed_measures(contract):
        warning[MEASURES] = "Shares of nulls, and distinct values by row, are about what they were before (warning)"
    if contract.watch.skew is not None:
        warning[SKEW] = "Partitions have about as many rows as comparable ones before, and keys are as even (warning)"
    if lookback_of(contract) is not None:
        warning[TOO_LATE] = f"No rows came for partitions older than the newest {contract.runs.lookback} (warning)"
    return [
        *(dg.AssetCheckSpec(name, asset=key, blocking=True, description=text) for name, text in blocking.items()),
        *(dg.AssetCheckSpec(name, asset=key, description=text) for name, text in warning.items()),
        *complete_specs(key, contract),
    ]


def passed_checks(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Report the checks of a publication: `contract` passed, as it was audited before the commit; others run now."""
    results = [
        dg.AssetCheckResult(
            check_name=CONTRACT,
            asset_key=key,
            passed=True,
            metadata={
                "rules": len(contract.rules) + len(contract.audits),
                "rows_audited": commit.rows_out,
                "table_version": commit.version,
            },
        ),
        ledger_result(key, ledger.audit(step.lake, step.events, contract, list(commit.entries))),
    ]
    results += [*audit_warning_results(key, contract, commit), *complete_results(key, contract, step.events)]
    for checked in (share_results, measure_results, skew_results, finality_results):
        results += checked(key, contract, step, commit)
    return results


def ledger_result(key: dg.AssetKey, lines: Sequence[LedgerLine]) -> dg.AssetCheckResult:
    problems = {line.entry.partition: line.problem for line in lines if line.problem}
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    return dg.AssetCheckResult(
        check_name=LEDGER,
        asset_key=key,
        passed=not problems,
        metadata={
            "rows_in": sum(line.entry.rows_in for line in lines),
            "rows_out": sum(line.entry.rows_out for line in lines),
            # One number per reason: Dagster's pages show and plot numbers, and hide JSON behind a link.
            **{f"{'added' if rows < 0 else 'left_out'}/{name}": abs(rows) for name, rows in sorted(reasons.items())},
            **({"problems": dict(problems)} if problems else {}),
        },
    )


def failed_checks(key: dg.AssetKey, error: PlatformError) -> Iterator[dg.AssetCheckResult]:
    """Report the failed checks of a refused publication, with all violations; nothing for other kinds of error."""
    if not isinstance(error, AuditFailed):
        return
    accounts = [item for item in error.violations if item.rule.startswith("account.")]
    rules = [item for item in error.violations if not item.rule.startswith("account.")]
    for name, found in ((CONTRACT, rules), (LEDGER, accounts)):
        if found:
            yield dg.AssetCheckResult(
                check_name=name,
                asset_key=key,
                passed=False,
                description=f"{len(found)} violation(s); nothing was published",
                metadata={
                    "violations": [
                        f"{item.rule} in '{item.partition}': found {item.found} ({item.detail})" for item in found
                    ]
                },
            )


def carried(instance: dg.DagsterInstance, contract: Contract) -> list[dg.AssetCheckEvaluation]:
    """Return the newest evaluations of a dataset's timed checks, to be logged by the run that publishes."""
    key, watch = asset_key(contract.dataset), contract.watch
    names = [name for name in (FLOW, LAG, SLA) if getattr(watch, name) is not None]
    newest = [newest_evaluation(instance, dg.AssetCheckKey(key, name)) for name in names]
    return [
        dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=before.check_name,
            passed=before.passed,
            severity=before.severity,
            description=before.description,
            metadata={**before.metadata, CARRIED: True},
        )
        for before, _ in filter(None, newest)
    ]


def waiting_spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        WAITING,
        asset=key,
        description="No partition waits for a person: each one that failed, or is held back, was mended since",
    )


def waiting_result(contract: Contract, waiting: Mapping[str, PlatformError]) -> dg.AssetCheckResult:
    reasons = by_reason(waiting)
    return dg.AssetCheckResult(
        check_name=WAITING,
        asset_key=asset_key(contract.dataset),
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
