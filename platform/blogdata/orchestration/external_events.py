"""The external trigger of a deployment: its senders and tokens from the settings, its inbox, and its HTTP answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta, timezone
from importlib.metadata import version
from types import MappingProxyType

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.patterns.ingestion.event_inbox import Inbox, InboxUnusable
from blogdata.patterns.ingestion.external_trigger import FILE, HTTP, Notification, Sender, Trigger
from blogdata.patterns.ingestion.trigger_event import EventRefused, Forged, IdReused, NotPermitted, TooLarge
from blogdata.services import event_tokens
from blogdata.services.config import Settings
from blogdata.services.event_receiver import Post, Reply

_STATUS: Mapping[type[EventRefused], int] = MappingProxyType(
    {Forged: 401, NotPermitted: 403, IdReused: 409, TooLarge: 413}
)
"""HTTP status of the refusals; 400 for the others."""
_RETRY_SECONDS = "30"


def inbox(settings: Settings) -> Inbox:
    """Return the inbox of a deployment."""
    return Inbox(path=settings.home / "events.sqlite")


def trigger(settings: Settings, datasets: Collection[str]) -> Trigger:
    """Build the entrance for events.

    Args:
        settings: Settings of the deployment.
        datasets: The declared datasets.

    Raises:
        ConfigurationError: A sender may request a dataset that is not declared.
    """
    for sender in settings.events.senders:
        if undeclared := sorted({*sender.datasets} - {*datasets}):
            raise ConfigurationError(
                what=f"the sender {sender.name} may request {', '.join(undeclared)}, which is not declared",
                where="blogdata.toml, [[events.senders]]",
                next_step=f"choose from: {', '.join(datasets)}",
            )
    return Trigger(
        senders={
            sender.name: Sender(
                name=sender.name, datasets=sender.datasets, channels=frozenset([FILE] if sender.files else [])
            )
            for sender in settings.events.senders
        },
        tokens=event_tokens.Tokens(settings),
        datasets=datasets,
        inbox=inbox(settings),
        oldest=timedelta(seconds=settings.events.max_age),
        longest=timedelta(seconds=settings.events.max_span),
        version=version("blogdata"),
    )


def answer(entrance: Trigger) -> Callable[[Post], Reply]:
    """Build what answers the receiver's requests: the event is on the disk before its sender is answered."""

    def reply(post: Post) -> Reply:
        try:
            notification = Notification(
                # The body of somebody without a token is not read.
                body=post.read() if entrance.is_known(post.token) else b"",
                size=post.size,
                channel=HTTP,
                origin=post.origin,
                at=datetime.now(timezone.utc),
                token=post.token,
            )
            entry, known = entrance.take(notification)
        except EventRefused as error:
            status = _STATUS.get(type(error), 400)
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return Reply(
                status=status,
                content={"error": error.what, "next": error.next_step},
                line=f"{error.kind}: {error.what}",
                headers=headers,
            )
        except (InboxUnusable, ConfigurationError) as error:
            return _unavailable(error)
        return Reply(
            status=200 if known else 202,
            content={"event": entry.event.key, "state": entry.state, "known": known},
            line=f"{'known' if known else 'accepted'}: {entry.event.key}",
        )

    return reply


def _unavailable(error: PlatformError) -> Reply:
    # The sender learns nothing about this machine; its event is not refused: it is to be sent again.
    return Reply(
        status=503,
        content={"error": "the event cannot be kept now", "next": "send it again later"},
        line=f"unavailable: {error.what} ({error.where})",
        headers={"Retry-After": _RETRY_SECONDS},
    )
