"""Names that people give on the command line, held against what there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patterns.core.errors import ConfigurationError


def known(given: Sequence[str], datasets: Iterable[str], *, where: str, kind: str = "dataset") -> None:
    """Refuse names of what does not exist.

    Args:
        given: What a person typed.
        datasets: What there is.
        where: The command or option, for the message.
        kind: What is named.

    Raises:
        ConfigurationError: Some do not exist.
    """
    there = list(datasets)
    unknown = sorted(set(given) - set(there))
    if unknown:
        raise ConfigurationError(
            what=f"no {kind} is called {', '.join(unknown)}",
            where=where,
            next_step=f"choose from: {', '.join(there)}",
        )
