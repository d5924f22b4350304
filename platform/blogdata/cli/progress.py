"""Shows the progress of a run, and collects its outcome."""

from __future__ import annotations

from typing import Any

import dagster as dg

from blogdata.cli.output import DATASET, Outcome, Screen
from blogdata.contract.publication import PARTITION_ROWS, ROWS, ROWS_ADDED
from blogdata.operate.dagster_internals import SerializableErrorInfo
from blogdata.runs.checks import WAITING

_LANDED = (("new", "rows"), ("rows", "rows"), ("lines", "lines"))
"""Figure of an asset of the landing zone to what it counts; the first one that is there."""


class RunProgress:
    def __init__(self, screen: Screen, outcome: Outcome) -> None:
        self.interrupted = False
        self.metadata: dict[str, Any] = {}
        """Metadata of the outputs and materializations."""
        self._screen = screen
        self.outcome = outcome
        self._published: dict[str, dict[str, Any]] = {}

    def see(self, event: dg.DagsterEvent) -> None:
        if event.event_type == dg.DagsterEventType.STEP_START:
            self._published = {}
            self._screen.status(f"computing what is stale of {_dataset(event)}")
        elif event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            self._materialized(event)
        elif event.event_type == dg.DagsterEventType.STEP_OUTPUT:
            self.metadata |= event.step_output_data.metadata
        elif event.event_type == dg.DagsterEventType.STEP_SUCCESS:
            self._show_published()
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            self._check(event)
        elif event.is_step_failure:
            self._show_published()
            error = _first_error(event)
            if error is not None and error.cls_name == dg.DagsterExecutionInterruptedError.__name__:
                self.interrupted = True
            self.outcome.problems.append(_what_failed(event))
        elif event.is_run_failure and self.outcome.ok:
            self.outcome.problems.append(event.message or "the run failed")

    def _materialized(self, event: dg.DagsterEvent) -> None:
        materialization = event.step_materialization_data.materialization
        figures, name = materialization.metadata, ".".join(materialization.asset_key.path)
        self.metadata |= figures
        step = self._published.setdefault(name, {"dataset": name, "rows": 0, "seconds": 0.0})
        if materialization.asset_key.path[0] == "landing":
            counted = [f"{_figure(figures[key]):,.0f} {what}" for key, what in _LANDED if key in figures]
            step["landed"] = counted[0] if counted else "done"
            return
        written = next((figures[key] for key in (ROWS_ADDED, PARTITION_ROWS, ROWS) if key in figures), None)
        step["rows"] += int(_figure(written))
        step["seconds"] = round(_figure(figures.get("seconds")), 2)

    def _show_published(self) -> None:
        for dataset, step in self._published.items():
            self.outcome.steps.append(step)
            if "landed" in step:
                self._screen.print(f"  {dataset:<{DATASET}} {step['landed']:>17} landed")
                continue
            rows, seconds = step["rows"], step["seconds"]
            self.outcome.rows += rows
            rate = f" {rows / seconds:>10,.0f} rows/s" if rows and seconds else ""
            self._screen.print(f"  {dataset:<{DATASET}} {rows:>12,} rows {seconds:>7.1f} s{rate}")

    def _check(self, event: dg.DagsterEvent) -> None:
        evaluation = event.asset_check_evaluation_data
        # Partitions that wait for a person also fail their step, which reports why.
        if not evaluation.passed and evaluation.check_name != WAITING:
            name = f"{evaluation.asset_key.to_user_string()}:{evaluation.check_name}"
            figures = {key: value.value for key, value in evaluation.metadata.items()}
            text = f"check {name} failed: {evaluation.description or figures}"
            if evaluation.severity == dg.AssetCheckSeverity.ERROR:
                self.outcome.problems.append(text)
            else:
                self._screen.print(f"  warning: {text}", style="yellow")


def _figure(value: Any) -> float:
    return float(value.value or 0) if isinstance(value, dg.IntMetadataValue | dg.FloatMetadataValue) else 0.0


def _dataset(event: dg.DagsterEvent) -> str:
    return (event.step_key or "").replace("__", ".", 1)


def _first_error(event: dg.DagsterEvent) -> SerializableErrorInfo | None:
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error


def _what_failed(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return f"{_dataset(event)}: {data.user_failure_data.description}"
    error = _first_error(event)
    message = error.message.strip() if error else "failed"
    return f"{_dataset(event)}: {message} (the run's log is in the UI: blogdata ui)"
