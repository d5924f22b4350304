"""One's own log: an access log in Combined Log Format is landed and published to gold, in a new deployment."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Size, interleaved, say

LINES = 100_000
DAYS = 3
BEGIN = datetime(2026, 1, 5, tzinfo=timezone.utc)
PATHS = ("/", "/archive", "/about", "/2026/01/spark", "/2026/01/delta", "/style.css", "/logo.png", "/feed/")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
)


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure with a log of this many lines."""
    lines = size.visits or LINES
    log = bench.folder("own-log") / "access.log"
    log.write_text("".join(log_lines(lines)), encoding="utf-8")
    say(f"an access log of {lines:,} lines, {size.rounds} rounds")
    deployments: list[Deployment] = []
    peer = Peer(
        name="land and run",
        prepare=lambda number: deployments.append(bench.deployment(f"own-log-{number}")),
        run=lambda number: _land_and_run(deployments[-1], log),
    )
    seconds = interleaved([peer], size.rounds, warm_ups=1)
    for deployment in deployments:
        deployment.remove()
    return [Case(name=f"{lines:,} lines", seconds=seconds)]


def log_lines(count: int) -> Iterator[str]:
    """Write an access log of some days: pages, assets, feeds and crawlers; always the same."""
    draw = random.Random(7)
    for number in range(count):
        time = (BEGIN + timedelta(days=DAYS) * (number / count)).strftime("%d/%b/%Y:%H:%M:%S +0000")
        visitor = draw.randrange(count // 20 + 1)
        address = f"198.51.{visitor // 250 % 250}.{visitor % 250}"
        request = f'"GET {draw.choice(PATHS)} HTTP/1.1" {draw.choices((200, 404), (95, 5))[0]} 512'
        yield f'{address} - - [{time}] {request} "-" "{AGENTS[visitor % len(AGENTS)]}"\n'


def _land_and_run(deployment: Deployment, log: Path) -> None:
    deployment.command("land", "logs", str(log))
    deployment.run()
