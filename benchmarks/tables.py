"""Formats one benchmark's figures as tables, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

VERDICTS = {True: "met", False: "missed", None: "not measured"}
"""What is said of a target that was met, or not, or whose size was not measured."""


def show(document: dict[str, Any]) -> None:
    """Print machine, cases and targets."""
    print(f"\n({document['letter']}) {document['title']}")
    print("    " + ", ".join(f"{name} {value}" for name, value in document["machine"].items()))
    parts = [part for part in (cases(document), ratios(document), targets(document)) if part]
    print("\n".join(["", *(line for part in parts for line in (*part, ""))]))


def cases(document: dict[str, Any]) -> list[str]:
    """Return medians and all single times of every case; none where no seconds were kept."""
    rows = [
        (case["name"], peer, f"{case['medians'][peer]:.2f}", " ".join(f"{second:.2f}" for second in times))
        for case in document["cases"]
        for peer, times in case["seconds"].items()
    ]
    return table(("case", "peer", "median s", "rounds s"), rows) if rows else []


def ratios(document: dict[str, Any]) -> list[str]:
    """Return the ratios of every case; none where the peers' jobs differ."""
    rows = [
        (case["name"], f"{ratio['over']} / {ratio['under']}", f"{ratio['value']:.2f}")
        for case in document["cases"]
        for ratio in case["ratios"]
    ]
    return table(("case", "ratio of medians", ""), rows) if rows else []


def targets(document: dict[str, Any]) -> list[str]:
    """Return targets and measured values."""
    rows = [
        (
            target["what"],
            f"{target['bound']} {target['limit']:g}{target['unit']}",
            "–" if target["found"] is None else f"{target['found']:.2f}{target['unit']}",
            VERDICTS[target["met"]],
        )
        for target in document["targets"]
    ]
    return table(("target", "bound", "found", ""), rows) if rows else []


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a Markdown table with aligned columns."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
