"""Due alerts reach the configured channels, grouped, and stay due until a channel accepts them."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from alert_servers import Posted
from blogdata.alerts.alert import SHOWN, Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.alerts.command import Command
from blogdata.alerts.log import Log
from blogdata.alerts.record import AlertRecord, RecordUnusable
from blogdata.alerts.sending import AlertsNotSent, Policy, Route, pause_seconds, try_out
from blogdata.alerts.webhook import Webhook
from blogdata.errors import PlatformError
from blogdata.errors.severity import Severity


@dataclass(frozen=True)
class Memory:
    """A channel in this process, for rules that are independent of the transport."""

    got: list[Message] = field(default_factory=list)
    fault: list[Exception] = field(default_factory=list)
    hangs: threading.Event | None = None

    def send(self, message: Message, seconds: float) -> None:
        if self.hangs is not None:
            self.hangs.wait(30)
        if self.fault:
            raise self.fault[0]
        self.got.append(message)

    def check(self, seconds: float) -> None:
        pass


def failed(what: str = "it is broken", **kind: bool) -> ChannelFailed:
    return ChannelFailed(what=what, where="memory", next_step="mend it", **kind)


def states(channel: Memory) -> list[dict[str, list[str]]]:
    return [
        {state: [alert.identity for alert in alerts] for state, alerts in message.states.items() if alerts}
        for message in channel.got
    ]


def test_severity_and_owner_choose_the_channels(tick: Any, alert: Any) -> None:
    everything, urgent, platform = Memory(), Memory(), Memory()
    routes = [
        Route(name="everything", channel=everything),
        Route(name="urgent", channel=urgent, least=Severity.CRITICAL),
        Route(name="platform", channel=platform, owners=("team:platform",)),
    ]
    alerts = [alert("c"), alert("w", severity=Severity.WARNING), alert("p", owner="team:platform")]
    tick(alerts, routes)
    assert states(everything) == [{"new": ["c", "w"]}, {"new": ["p"]}]
    assert states(urgent) == [{"new": ["c"]}, {"new": ["p"]}]
    assert states(platform) == [{"new": ["p"]}]


@pytest.mark.parametrize(("group", "messages"), [("owner", 2), ("channel", 1), ("none", 3)])
def test_one_round_is_grouped_into_messages(tick: Any, alert: Any, group: str, messages: int) -> None:
    memory = Memory()
    tick([alert("a"), alert("b"), alert("c", owner="team:platform")], [Route(name="m", channel=memory)], group=group)
    assert len(memory.got) == messages


def test_news_repetitions_and_ends_share_a_message(tick: Any, alert: Any) -> None:
    memory = Memory()
    routes = [Route(name="m", channel=memory)]
    tick([alert("a"), alert("b")], routes)
    tick([alert("a"), alert("b")], routes, at=60)
    tick([alert("b"), alert("c")], routes, at=3600, repeat_after=3600)
    assert states(memory) == [{"new": ["a", "b"]}, {"new": ["c"], "still standing": ["b"], "resolved": ["a"]}]
    assert memory.got[1].subject == "[critical] 1 new, 1 still standing, 1 resolved (team:analytics)"


def test_of_one_identity_the_most_urgent_counts(tick: Any, alert: Any) -> None:
    memory = Memory()
    twice = [alert("a"), alert("a", severity=Severity.WARNING)]
    for at in (0, 60, 120):
        tick(twice, [Route(name="m", channel=memory)], at=at)
    assert [message.severity for message in memory.got] == [Severity.CRITICAL]


def test_identities_stay_different(alert: Any) -> None:
    identities = [f"{'x' * 400}{end}" for end in ("1", "2")] + ["a b", "a\nb", "a\udcffb"]
    made = [alert(identity).identity for identity in identities]
    assert len({*made}) == 5
    assert made == [alert(identity).identity for identity in made]


def test_a_failing_channel_keeps_its_alerts_due(tick: Any, alert: Any, record: AlertRecord) -> None:
    good, bad = Memory(), Memory(fault=[failed()])
    routes = [Route(name="bad", channel=bad), Route(name="good", channel=good)]
    first = tick([alert()], routes)
    assert (len(good.got), [one.channel for one in first.failures]) == (1, ["bad"])
    assert "channel bad: it is broken" in str(AlertsNotSent(first.failures))
    # Recipients who never got the alert do not get its end.
    bad.fault.clear()
    second = tick([alert()], routes, at=60)
    assert (len(good.got), len(bad.got), second.failures) == (1, 1, ())
    assert record.failures() == {}


def test_a_failing_channel_is_tried_less_often(tick: Any, alert: Any) -> None:
    bad = Memory(fault=[failed()])
    rounds = [tick([alert()], [Route(name="bad", channel=bad)], at=60.0 * minute) for minute in range(120)]
    tried = [minute for minute, done in enumerate(rounds) if done.failures]
    assert tried == [0, 1, 3, 7, 15, 31, 63]
    assert all(done.failures or done.paused for done in rounds)
    assert pause_seconds(1000) < 3600


def test_a_hanging_channel_delays_no_other(tick: Any, alert: Any, record: AlertRecord) -> None:
    hangs = threading.Event()
    stuck, good = Memory(hangs=hangs), Memory()
    began = time.monotonic()
    done = tick([alert()], [Route(name="stuck", channel=stuck, seconds=0.2), Route(name="good", channel=good)])
    assert time.monotonic() - began < 10
    hangs.set()
    assert len(good.got) == 1
    assert "did not take all messages within 0.2 s" in done.failures[0].error.what


def test_a_refused_message_does_not_block_others(tick: Any, alert: Any) -> None:
    @dataclass(frozen=True)
    class Picky(Memory):
        def send(self, message: Message, seconds: float) -> None:
            if message.begun[0].identity == "a":
                raise failed("too odd", refused=True)
            super().send(message, seconds)

    picky = Picky()
    done = tick([alert("a"), alert("b")], [Route(name="picky", channel=picky)], group="none")
    assert states(picky) == [{"new": ["b"]}]
    assert [one.error.what for one in done.failures] == ["too odd"]


def test_a_partly_taken_message_is_not_repeated(tick: Any, alert: Any, record: AlertRecord) -> None:
    partly = Memory(fault=[failed("one receiver is unknown", taken=True)])
    routes = [Route(name="partly", channel=partly)]
    assert len(tick([alert()], routes).failures) == 1
    again = tick([alert()], routes, at=7200)
    assert (again.failures, len(record.messages(9))) == ((), 1)


def test_an_unexpected_fault_is_a_failure(tick: Any, alert: Any) -> None:
    odd = Memory(fault=[ValueError("no such thing: pa55word")])
    done = tick([alert()], [Route(name="odd", channel=odd, secrets=("pa55word",))])
    assert done.failures[0].error.what == "ValueError: no such thing: ***"


def test_an_unusable_channel_shows_its_own_error(tick: Any, alert: Any) -> None:
    unusable = PlatformError(what="the secret smtp does not exist", where="secrets/smtp", next_step="write it")
    done = tick([alert()], [Route(name="mail", channel=unusable)])
    assert (done.failures[0].error.what, done.failures[0].error.where) == (unusable.what, unusable.where)


def test_a_removed_channel_is_forgotten(tick: Any, alert: Any, record: AlertRecord) -> None:
    tick([alert()], [Route(name="old", channel=Memory(fault=[failed()]))])
    tick([alert()], [Route(name="new", channel=Memory())])
    assert (record.known("old"), record.failures()) == ({}, {})


def test_a_test_message_ends_the_pause(tick: Any, alert: Any, record: AlertRecord) -> None:
    memory = Memory(fault=[failed()])
    route = Route(name="m", channel=memory)
    tick([alert()], [route])
    assert try_out(route, Policy(), record) is not None
    memory.fault.clear()
    assert try_out(route, Policy(), record) is None
    assert tick([alert()], [route], at=1).sent == 1


def test_a_damaged_record_is_an_error(tick: Any, alert: Any, record: AlertRecord) -> None:
    record.path.write_bytes(b"this is no database" * 100)
    with pytest.raises(RecordUnusable, match="move it away"):
        tick([alert()], [Route(name="m", channel=Memory())])


def test_the_log_has_a_line_per_alert(tick: Any, alert: Any, caplog: pytest.LogCaptureFixture) -> None:
    many = [alert(f"a{number:02}", severity=Severity.WARNING) for number in range(SHOWN + 2)]
    tick([alert("c", text="two\nERROR forged"), *many], [Route(name="log", channel=Log())])
    assert caplog.records[0].levelname == "ERROR"
    assert caplog.records[0].getMessage() == "new: c: two ERROR forged (team:analytics; look at it)"
    assert (len(caplog.records), caplog.records[-1].getMessage()) == (SHOWN + 1, "and 3 more new")


def test_a_command_gets_the_message(tick: Any, alert: Any, tmp_path: Path) -> None:
    command = Command(argv=("sh", "-c", "cat > got; exit 0"), folder=tmp_path)
    assert tick([alert("$(touch injected)")], [Route(name="c", channel=command)]).sent == 1
    assert '"identity": "$(touch injected)"' in (tmp_path / "got").read_text()
    assert not (tmp_path / "injected").exists()


def test_a_failing_command_says_why(tick: Any, alert: Any, tmp_path: Path) -> None:
    program = "import sys; sys.exit('the pager is off')"
    failing = Command(argv=(sys.executable, "-c", program), folder=tmp_path)
    absent = Command(argv=("no-such-program",), folder=tmp_path)
    done = tick([alert()], [Route(name="failing", channel=failing), Route(name="absent", channel=absent)])
    assert [one.error.what for one in done.failures] == [
        "it ended with exit code 1: the pager is off",
        "it cannot be started: No such file or directory",
    ]
    with pytest.raises(ChannelFailed, match="no such program"):
        absent.check(1)
    failing.check(1)
    own = tmp_path / "page-me"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    for program in ("./page-me", str(own)):
        Command(argv=(program,), folder=tmp_path).check(1)


def test_a_hanging_command_is_killed_with_its_children(tick: Any, alert: Any, tmp_path: Path) -> None:
    command = Command(argv=("sh", "-c", "sleep 60 & echo $! > child; wait"), folder=tmp_path)
    done = tick([alert()], [Route(name="c", channel=command, seconds=1)])
    assert "was killed" in done.failures[0].error.what
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "status"
    deadline = time.monotonic() + 10
    # The process that adopts the killed child may reap it late.
    while child.exists() and "zombie" not in child.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_record_and_a_webhook_agree(tick: Any, alert: Any, hook: Posted, record: AlertRecord) -> None:
    tick([alert()], [Route(name="hook", channel=Webhook(address=hook.address))])
    (sent,) = record.messages(10)
    assert hook.bodies[0]["id"] == hook.headers[0]["Idempotency-Key"] == sent.identity
    assert (sent.channel, sent.subject, sent.begun) == ("hook", hook.bodies[0]["subject"], 1)
