"""Isolated Sequencer: pipelines of two teams run one after the other, each in its own process, by a contract.

Problem: another team computes from our tables. In one pipeline, its broken import stops our run, and its dependencies
become ours; in two, somebody has to know when the other one is to run.

How it works: each team has a :class:`CodeLocation`, with a process and dependencies of its own, and the data are what
they share. The consumer's own sensor follows our publications, and we do not know it; what it cannot load or compute
stops nothing of ours. (The other way is to call the consumer's interface, which knows its job's name.)

The trap: coupling. Whoever renames a column breaks a consumer nobody has told: the team is in `consumers` of the
contract, is named before it changes, and compares the table with what it relies on before it reads.

When not to use it: within one team; there one lineage knows the order (Local Sequencer).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class CodeLocation:
    """A team's code, which a process of its own serves."""

    name: str
    module: str
    interpreter: str
    options: tuple[str, ...] = ()

    def command(self, path: Path) -> list[str]:
        """Return the command of its code server, which listens at a socket."""
        # Behind a code server is a further one, at a socket in the folder for temporary files.
        tied = [self.interpreter, "-m", "blogdata.services.ends_with_parent", str(path.parent)]
        server = ["dagster", "code-server", "start", "--socket", str(path), "--location-name", self.name]
        return [*tied, *server, "--log-level", "warning", "-m", self.module, *self.options]
