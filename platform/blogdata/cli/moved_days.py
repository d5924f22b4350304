"""Has the served platform load its partitions anew when data have landed for other days than those it knows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError

from blogdata.errors import PlatformError
from blogdata.planning.history import Span
from blogdata.services.config import Settings
from resources.zone import days_of

_LOOK_SECONDS = 10.0


@contextmanager
def followed(settings: Settings, known: Span, load: Callable[[], None]) -> Iterator[None]:
    """Load the partitions anew when the deployment's days have changed, beside what the caller does."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(settings, known, load, ended), name="moved-days")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(settings: Settings, known: Span, load: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(_LOOK_SECONDS):
        try:
            days = days_of(settings)
        except (OSError, DeltaError, PlatformError):
            # A storage that does not answer is everybody's fault but of this page; the next look finds it.
            continue
        if days != known:
            load()
            known = days
