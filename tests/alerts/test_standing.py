"""When an alert is sent: at its begin, again after a pause, once at its end, and never in a flood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.alerts import standing
from blogdata.alerts.alert import Alert
from blogdata.alerts.standing import CALM_SECONDS, SETTLE_SECONDS, Told
from blogdata.errors.severity import Severity

DAY, MINUTE = 86_400.0, 60.0


def an_alert(severity: Severity = Severity.WARNING) -> Alert:
    return Alert(identity="a", severity=severity, owner="team:a", title="a", text="a", next_step="a")


def sent_over(
    holds: Iterable[tuple[float, Severity | None]], *, repeat_after: float = DAY, takes: bool = True
) -> list[tuple[float, str]]:
    """Follow one alert over several ticks; return what was sent at which tick."""
    known: Mapping[str, Told] = {}
    sent: list[tuple[float, str]] = []
    for now, severity in holds:
        alerts = [] if severity is None else [an_alert(severity)]
        found = standing.due(known, alerts, now=now, repeat_after=repeat_after)
        changed = dict(found.known)
        if takes:
            for state, those in (("new", found.begun), ("stands", found.standing), ("over", found.ended)):
                for one in those:
                    after = standing.ended(one, now) if state == "over" else standing.sent(one, now)
                    changed[one.alert.identity] = after
                    sent.append((now, state))
        known = changed
    return sent


W, C = Severity.WARNING, Severity.CRITICAL


def test_an_alert_is_told_once_until_repetition() -> None:
    assert sent_over([(at, W) for at in (0.0, 60.0, DAY - 1, DAY, DAY + 60)]) == [(0.0, "new"), (DAY, "stands")]


def test_its_end_is_told_once() -> None:
    assert sent_over([(0.0, W), (60.0, None), (120.0, None)]) == [(0.0, "new"), (60.0, "over")]


def test_an_untold_alert_needs_no_end() -> None:
    assert sent_over([(0.0, W), (60.0, None)], takes=False) == []


def test_a_more_urgent_alert_is_told_again() -> None:
    assert sent_over([(0.0, W), (60.0, C), (120.0, W), (180.0, C)]) == [(0.0, "new"), (60.0, "new")]


def test_a_flapping_alert_settles_down() -> None:
    flapping = [(at * MINUTE, W if at % 2 == 0 else None) for at in range(240)]
    assert sent_over(flapping) == [(0.0, "new"), (60.0, "over"), (120.0, "new")]


@pytest.mark.parametrize("minutes", [1, 2, 7, 15, 30, 90])
def test_no_rhythm_of_flapping_floods(minutes: int) -> None:
    week = [(at * MINUTE, W if (at // minutes) % 2 == 0 else None) for at in range(7 * 24 * 60)]
    assert len(sent_over(week)) <= 2 * 9 + 7 * 2


def test_an_end_counts_after_it_has_settled() -> None:
    returned = [(0.0, W), (60.0, None), (120.0, W)]
    then = [(180.0, None), (180.0 + SETTLE_SECONDS - 1, None), (180.0 + SETTLE_SECONDS, None)]
    assert sent_over([*returned, *then])[-1] == (180.0 + SETTLE_SECONDS, "over")


def test_after_a_calm_day_it_starts_anew() -> None:
    later = 60.0 + CALM_SECONDS
    sent = sent_over([(0.0, W), (60.0, None), (later, W), (later + 60, None)])
    assert sent[2:] == [(later, "new"), (later + 60, "over")]


def test_a_clock_set_back_silences_nothing() -> None:
    assert sent_over([(10 * DAY, W), (DAY, W)]) == [(10 * DAY, "new"), (DAY, "stands")]


@given(holds=st.lists(st.sampled_from([None, W, C]), max_size=60), step=st.integers(1, 200), takes=st.booleans())
def test_any_sequence_of_findings_sends_begins_and_ends_in_turn(holds: list[Any], step: int, takes: bool) -> None:
    ticks = [(number * step * MINUTE, severity) for number, severity in enumerate(holds)]
    calm = [((len(holds) + more) * step * MINUTE + more * DAY, None) for more in (1, 2)]
    sent = [state for _, state in sent_over([*ticks, *calm], takes=takes)]
    assert (sent.count("new") > 0) == (takes and any(holds))
    # Each end has a begin before it, and recipients of a begin also get the end.
    events = [state for state in sent if state != "stands"]
    assert all(before != "over" or after != "over" for before, after in pairwise(events))
    assert not events or events[-1] == "over"
