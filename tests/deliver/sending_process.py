"""A process that sends from an outbox until nothing is left; tests kill it."""

from __future__ import annotations

import sys
from pathlib import Path

from blogdata.deliver.bin_pack_orderer import BinPacker
from blogdata.deliver.ordered_delivery import HttpTarget, deliver
from blogdata.deliver.outbox import Outbox
from patterns.partner_feed import as_it_is

box = Outbox(path=Path(sys.argv[1]))
with box.alone(), HttpTarget(sys.argv[2], key=None, timeout=2.0, record=as_it_is) as there:
    deliver(BinPacker(box.due(before="9999"), size=8), box, there)
