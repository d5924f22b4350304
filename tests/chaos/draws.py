"""Draws what is killed when from a seed, so that each kill can be repeated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from lineage.phases import PUBLISHED, UNPUBLISHED
from quality.contracts import CONTRACTS

LOGGED = "logged"
"""The log entry is there: what Delta does after that is its checkpoint."""
OPTIMIZE, VACUUM = "optimize", "vacuum"
MAINTENANCE = (OPTIMIZE, VACUUM)
RUN, SERVER = "run", "server"
BESIDE, AFTER, ENDED = "beside", "after", "ended"
FATES = (BESIDE, AFTER, ENDED, ENDED)
WITHOUT_INPUT = frozenset({"gold.requests_daily"})
"""Datasets that nothing lands for: there is no access log in the world of the campaigns."""
WRITERS = tuple(
    name for name, contract in CONTRACTS.items() if contract.appears_with is None and name not in WITHOUT_INPUT
)
"""Datasets that a run publishes; what appears with one of them is published by its commit."""
LONGEST_MILLISECONDS = 300
# Writing a checkpoint of a small table takes a tenth of this.
AFTER_THE_ENTRY_MILLISECONDS = 60
ATTEMPTS = 5
"""So often a publication is killed in one round at most."""
UNPUBLISHED_SHARE = 0.8
EXACT_SHARE = 0.6
MAINTENANCE_SHARE = 0.3
"""Share of rounds in which a table is maintained, and that is killed."""
SERVERS_ROUNDS = 0.08
"""Share of rounds in which servers are killed: whatever follows such a kill is done by a server that is cold."""
SERVERS_SHARE = 0.8


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One kill.

    Args:
        seed: Of the campaign.
        round: The number of its round.
        writer: Dataset being published, or whose table is being maintained.
        attempt: How often this publication was killed before.
        victim: The process of the run, or the Spark server.
        moment: Phase of the publication, or the kind of maintenance.
        delay: Milliseconds after the moment, while work continues; None: exactly at the moment, with the process held
            there.
        fate: Fate of the write that a killed run began in the server: it continues `beside` the next run, is held and
            continues `after` the next run has published, or is `ended`, as Spark does with abandoned executions.
    """

    seed: int
    round: int
    writer: str
    attempt: int = 0
    victim: str
    moment: str
    delay: int | None
    fate: str = BESIDE

    @property
    def is_maintenance(self) -> bool:
        """Whether it interrupts maintenance instead of a publication."""
        return self.moment in MAINTENANCE

    @property
    def text(self) -> str:
        """Describe the kill for people."""
        when = self.moment if self.delay is None else f"{self.moment} + {self.delay} ms"
        return f"{self.writer}: {self.victim} killed {'again ' if self.attempt else ''}at {when}"


def drawn(seed: int, round_: int, writers: Sequence[str]) -> list[Kill]:
    """Draw the kills of a round; a publication may be killed again if the attempt before published nothing.

    Args:
        seed: Of the campaign.
        round_: Number of the round.
        writers: Datasets.
    """
    of_servers = random.Random(f"{seed}/{round_}/servers").random() < SERVERS_ROUNDS
    servers, attempts = (SERVERS_SHARE, 1) if of_servers else (0.0, ATTEMPTS)
    kills = []
    for writer in writers:
        kills += [draw(seed, round_, writer, attempt, servers=servers) for attempt in range(attempts)]
        dice = random.Random(f"{seed}/{round_}/{writer}/maintenance")
        if dice.random() < MAINTENANCE_SHARE:
            kills.append(
                Kill(
                    seed=seed,
                    round=round_,
                    writer=writer,
                    victim=_victim(dice, servers),
                    moment=dice.choice(MAINTENANCE),
                    delay=dice.randint(0, LONGEST_MILLISECONDS),
                )
            )
    return kills


def draw(seed: int, round_: int, writer: str, attempt: int = 0, *, servers: float = 0.0) -> Kill:
    """Draw a kill in a publication.

    Args:
        seed: Of the campaign.
        round_: Number of the round.
        writer: The dataset.
        attempt: How often the publication was killed before.
        servers: The share of kills whose victim is the server.
    """
    dice = random.Random(f"{seed}/{round_}/{writer}/{attempt}")
    victim = _victim(dice, servers)
    is_early = dice.random() < UNPUBLISHED_SHARE
    delay: int | None = dice.randint(0, LONGEST_MILLISECONDS)
    if dice.random() < EXACT_SHARE:
        moment, delay = dice.choice(UNPUBLISHED if is_early else PUBLISHED), None
    elif is_early:
        moment = "opened"
    else:
        moment = dice.choice(("audited", LOGGED, *PUBLISHED))
        delay = dice.randint(0, AFTER_THE_ENTRY_MILLISECONDS) if moment == LOGGED else delay
    return Kill(
        seed=seed,
        round=round_,
        writer=writer,
        attempt=attempt,
        victim=victim,
        moment=moment,
        delay=delay,
        fate=dice.choice(FATES),
    )


def _victim(dice: random.Random, servers: float) -> str:
    return SERVER if dice.random() < servers else RUN
