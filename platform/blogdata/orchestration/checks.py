"""The checks of every dataset; the step that wrote it reports them, without a second scan of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.evidence import ledger
from blogdata.evidence.ledger import LedgerLine
from blogdata.lake.commit import Commit
from blogdata.orchestration.audit_warnings import audit_warning_results, audit_warning_specs
from blogdata.orchestration.completeness import complete_results, complete_specs
from blogdata.orchestration.finality import finality_results, finality_specs
from blogdata.orchestration.measures import measure_results, measure_specs
from blogdata.orchestration.shares import share_results, share_specs
from blogdata.orchestration.skew import skew_results, skew_specs
from blogdata.orchestration.step import Step
from blogdata.publish.contract import Contract
from blogdata.publish.write_faults import AuditFailed

CONTRACT = "contract"
LEDGER = "ledger"


def newest_evaluation(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> tuple[dg.AssetCheckEvaluation, float] | None:
    """Find the newest evaluation of a check.

    Returns:
        The evaluation, and when it was stored (seconds since the epoch); None if the check was never evaluated, or if a
        run has only planned it since: Dagster then shows it as not evaluated.
    """
    record = instance.get_latest_asset_check_evaluation_record(key)
    # Of a planned check, Dagster returns the plan as the evaluation.
    if record is None or not isinstance(record.evaluation, dg.AssetCheckEvaluation):
        return None
    return record.evaluation, record.create_timestamp


def check_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check specs of a dataset: `contract` and `ledger`, which block downstream, and those it opts into."""
    rules = [f"{rule.name}: {rule.description}" for rule in contract.rules]
    rules += [f"{audit.name}: {audit.description}" for audit in contract.audits]
    specs = [
        dg.AssetCheckSpec(
            CONTRACT,
            asset=key,
            blocking=True,
            description="Every rule of the contract holds for the published rows. " + "; ".join(rules),
        ),
        dg.AssetCheckSpec(
            LEDGER,
            asset=key,
            blocking=True,
            description="Rows in = rows out + every row left out, with its reason; and the rows are still there",
        ),
    ]
    specs += audit_warning_specs(key, contract)
    specs += complete_specs(key, [contract])
    specs += [*share_specs(key, contract), *measure_specs(key, contract), *skew_specs(key, contract)]
    return [*specs, *finality_specs(key, contract)]


def passed_checks(
    key: dg.AssetKey, contract: Contract, step: Step, commit: Commit
) -> tuple[Sequence[LedgerLine], list[dg.AssetCheckResult]]:
    """Report the checks of a publication: `contract` passed, as it was audited before the commit; others run now.

    Returns:
        Ledger lines of the published partitions, and the check results.
    """
    lines = ledger.audit(step.lake, step.events, contract, list(commit.entries))
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
        ledger_result(key, lines),
    ]
    results += audit_warning_results(key, contract, commit)
    results += complete_results(key, [contract], step.events)
    results += share_results(key, contract, step, commit)
    results += measure_results(key, contract, step, commit)
    results += skew_results(key, contract, step, commit)
    return lines, [*results, *finality_results(key, contract, step, commit)]


def ledger_result(key: dg.AssetKey, lines: Sequence[LedgerLine]) -> dg.AssetCheckResult:
    """Report whether the ledger lines balance."""
    problems = {line.entry.partition: line.problem for line in lines if line.problem}
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    return dg.AssetCheckResult(
        check_name=LEDGER,
        asset_key=key,
        passed=not problems,
        severity=dg.AssetCheckSeverity.ERROR,
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
                severity=dg.AssetCheckSeverity.ERROR,
                description=f"{len(found)} violation(s); nothing was published",
                metadata={
                    "violations": [
                        f"{item.rule} in '{item.partition}': found {item.found} ({item.detail})" for item in found
                    ]
                },
            )
