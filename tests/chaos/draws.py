"""What is killed when: drawn from a seed, so that each kill can be repeated by its own."""

from __future__ import annotations

import random
from dataclasses import dataclass

from lineage.phases import PHASES, RECORDED
from quality.contracts import CONTRACTS

LOGGED = "logged"
"""The log entry is there: what Delta does after that is its checkpoint."""
OPTIMIZE, VACUUM = "optimize", "vacuum"
MAINTENANCE = (OPTIMIZE, VACUUM)
RUN, SERVER = "run", "server"
WRITERS = tuple(name for name, contract in CONTRACTS.items() if contract.appears_with is None)
"""Datasets that a run publishes; what appears with one of them is published by its commit."""
LONGEST_MILLISECONDS = 300
# A checkpoint of a small table takes a tenth of this.
AFTER_THE_ENTRY_MILLISECONDS = 60
SERVERS_ROUNDS = 0.06
"""Share of rounds in which servers are killed: whatever follows such a kill is done by a server that is cold."""
TIMED = ("opened", "audited", LOGGED, "committed", RECORDED)


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One kill.

    Args:
        seed: Of the campaign.
        round: In which it happens.
        writer: Dataset that is being published, or whose table is being maintained.
        victim: The process of the run, or the Spark server.
        moment: Phase of the publication, or the kind of maintenance.
        delay: Milliseconds after the moment, while work goes on; None: exactly then, held there.
        outlived: The write of a killed run that is held in the server goes on only after the next run has published;
            otherwise beside it.
    """

    seed: int
    round: int
    writer: str
    victim: str
    moment: str
    delay: int | None
    outlived: bool

    @property
    def is_maintenance(self) -> bool:
        """Whether it is not a publication that is cut off."""
        return self.moment in MAINTENANCE

    @property
    def text(self) -> str:
        """What happens, for people."""
        when = self.moment if self.delay is None else f"{self.moment} + {self.delay} ms"
        return f"{self.writer}: {self.victim} killed at {when}"


def draw(seed: int, round_: int, writer: str, *, servers: float | None = None, maintenance: float = 0.2) -> Kill:
    """Draw a kill.

    Args:
        seed: Of the campaign.
        round_: Number of the round.
        writer: The dataset.
        servers: Share of kills whose victim is the server; None: most in some rounds, none in all others.
        maintenance: Share of kills in OPTIMIZE or VACUUM.
    """
    if servers is None:
        servers = 0.8 if random.Random(f"{seed}/{round_}/servers").random() < SERVERS_ROUNDS else 0.0
    dice = random.Random(f"{seed}/{round_}/{writer}")
    victim = SERVER if dice.random() < servers else RUN
    delay: int | None = dice.randint(0, LONGEST_MILLISECONDS)
    if dice.random() < maintenance:
        moment = dice.choice(MAINTENANCE)
    elif dice.random() < 0.5:
        moment, delay = dice.choice(PHASES), None
    else:
        moment = dice.choice(TIMED)
        delay = dice.randint(0, AFTER_THE_ENTRY_MILLISECONDS) if moment == LOGGED else delay
    return Kill(
        seed=seed, round=round_, writer=writer, victim=victim, moment=moment, delay=delay, outlived=dice.random() < 0.5
    )
