"""A process that sends from an outbox until nothing is left; tests kill it."""

from __future__ import annotations

import sys
from pathlib import Path

from blogdata.patterns.data_value.bin_pack_orderer import BinPacker
from blogdata.patterns.data_value.ordered_delivery import HttpTarget, deliver
from blogdata.patterns.data_value.outbox import Outbox
from data_value.partner_feed import as_it_is

box = Outbox(path=Path(sys.argv[1]))
with box.alone(), HttpTarget(sys.argv[2], key=None, timeout=2.0, record=as_it_is) as there:
    deliver(BinPacker(box.due(before="9999"), size=8), box, there)
