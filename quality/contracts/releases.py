"""Where the released versions of the contracts' schemas are recorded."""

from pathlib import Path

RELEASED = Path(__file__).with_name("released.json")
"""Written by `blogdata schema release`; `blogdata schema check` compares the contracts with it."""
