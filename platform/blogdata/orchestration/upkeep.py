"""The maintenance of a deployment: every action, in the order in which they are taken."""

from __future__ import annotations

from blogdata.orchestration.compacting import Compacting
from blogdata.orchestration.maintenance import Action

ACTIONS: tuple[Action, ...] = (Compacting(),)
"""What frees files comes before what removes them."""
