"""Dagster's stored errors, final or retried, contain no value quoted by their cause."""

import dagster as dg
import pyarrow as pa
import pytest

from blogdata.errors import PlatformError, foreign
from blogdata.orchestration import retries
from blogdata.orchestration.retries import failure, reported

MARKER = "marker-of-a-person"


class _Lasting(PlatformError):
    pass


class _Passing(PlatformError):
    transient = True


@pytest.mark.parametrize("kind", [_Lasting, _Passing])
def test_dagster_stores_neither_the_message_nor_its_causes(
    kind: type[PlatformError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "pause", lambda attempt: 0.01)

    @dg.op
    def typed(context: dg.OpExecutionContext) -> None:
        fault = kind(what="a fault", where="here", next_step="mend it")
        fault.__cause__ = ValueError(MARKER)
        raise failure(context, fault) from fault

    @dg.op
    def untyped(context: dg.OpExecutionContext) -> None:
        with reported(context):
            raise ValueError(MARKER)

    @dg.job
    def work() -> None:
        typed()
        untyped()

    with dg.DagsterInstance.ephemeral() as instance:
        done = work.execute_in_process(instance=instance, raise_on_error=False)
        stored = [dg.serialize_value(event) for event in instance.all_logs(done.run_id)]
    assert [event for event in stored if '"STEP_FAILURE"' in event]
    assert bool([event for event in stored if '"STEP_UP_FOR_RETRY"' in event]) == kind.transient
    assert not [event for event in stored if MARKER in event]


def test_an_unforeseen_error_is_placed_in_the_platforms_code_not_in_the_librarys() -> None:
    with pytest.raises(pa.ArrowInvalid) as raised:
        pa.array([MARKER]).cast(pa.int64())
    told = foreign.unforeseen(raised.value)
    assert "attacks/test_values_in_errors.py:" in told.where
    assert MARKER not in str(told)
