"""Shows what a run is doing, and gathers what it did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._utils.error import SerializableErrorInfo
from rich.status import Status

from blogdata.output import console


@dataclass(kw_only=True)
class Outcome:
    """What a command ran."""

    runs: int = 0
    rows: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing failed."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Give the outcome as plain values."""
        return {
            "ok": self.ok,
            "runs": self.runs,
            "rows": self.rows,
            "seconds": round(self.seconds, 1),
            "steps": self.steps,
            "problems": self.problems,
        }


class RunProgress:
    """One run as lines: a line a dataset when it is published, and on a terminal what is going on in between."""

    def __init__(self, label: str, outcome: Outcome, *, shown: bool) -> None:
        self.interrupted = False
        self._label = label
        self._outcome = outcome
        self._shown = shown
        self._status: Status | None = None
        self._rows = 0
        self._started = time.monotonic()

    def __enter__(self) -> RunProgress:
        """Begin to show the run."""
        if self._shown:
            console.print(self._label, markup=False)
            if console.is_terminal:
                self._status = console.status("starting")
                self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing the run."""
        if self._status is not None:
            self._status.stop()

    def see(self, event: dg.DagsterEvent) -> None:
        """Take note of something that happened in the run."""
        if event.event_type == dg.DagsterEventType.STEP_START:
            self._started, self._rows = time.monotonic(), 0
            if self._status is not None:
                self._status.update(f"{_dataset(event)} is computed")
        elif event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            count = event.step_materialization_data.materialization.metadata.get("dagster/row_count")
            self._rows += int(count.value) if isinstance(count, dg.IntMetadataValue) and count.value else 0
        elif event.event_type == dg.DagsterEventType.STEP_SUCCESS:
            self._published(event)
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            self._check(event)
        elif event.is_step_failure:
            self.interrupted = self.interrupted or _was_interrupted(event)
            self._outcome.problems.append(_what_failed(event))
        elif event.is_run_failure and self._outcome.ok:
            self._outcome.problems.append(event.message or "the run failed")

    def _published(self, event: dg.DagsterEvent) -> None:
        seconds = time.monotonic() - self._started
        self._outcome.rows += self._rows
        self._outcome.steps.append({"dataset": _dataset(event), "rows": self._rows, "seconds": round(seconds, 2)})
        if self._shown:
            rate = f"{self._rows / seconds:>10,.0f} rows/s" if self._rows else ""
            console.print(f"  {_dataset(event):<26} {self._rows:>12,} rows {seconds:>7.1f} s {rate}", markup=False)

    def _check(self, event: dg.DagsterEvent) -> None:
        evaluation = event.asset_check_evaluation_data
        if not evaluation.passed:
            name = f"{evaluation.asset_key.to_user_string()}:{evaluation.check_name}"
            text = f"check {name} failed: {evaluation.description or _plain(evaluation.metadata)}"
            if evaluation.severity == dg.AssetCheckSeverity.ERROR:
                self._outcome.problems.append(text)
            elif self._shown:
                console.print(f"  warning: {text}", style="yellow", markup=False)


def _plain(metadata: Any) -> dict[str, Any]:
    return {name: value.value for name, value in metadata.items()}


def _dataset(event: dg.DagsterEvent) -> str:
    return (event.step_key or "").replace("__", ".", 1)


def _was_interrupted(event: dg.DagsterEvent) -> bool:
    error = _first_error(event)
    return error is not None and error.cls_name == DagsterExecutionInterruptedError.__name__


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
