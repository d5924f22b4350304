"""The channel `mail`: a plain-text mail through an SMTP server."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blogdata.alerts import addresses
from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed

_LONGEST_LINE = 900
"""Characters; RFC 5322 allows 998."""
_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, kw_only=True)
class Mail:
    """Sends messages as mails.

    Args:
        address: `smtp://user@host:port` (STARTTLS) or `smtps://user@host:port` (TLS from the start).
        sender: The mail's `From`.
        to: Its receivers.
        password: Password of the user; None: no login.
        encrypted: False sends without TLS, and therefore without a login.
        ca_file: Trusted certificates in PEM; None: the machine's.
    """

    address: str
    sender: str
    to: tuple[str, ...]
    password: str | None = field(default=None, repr=False)
    encrypted: bool = True
    ca_file: Path | None = None

    def send(self, message: Message, seconds: float) -> None:
        """Send one mail to all receivers.

        Raises:
            ChannelFailed: The server took it for none of the receivers, or only for some.
        """
        with self._session(seconds) as server:
            refused = server.send_message(self.mail(message))
        if refused:
            raise self._failed(f"the server refused some of the receivers: {', '.join(sorted(refused))}", taken=True)

    def check(self, seconds: float) -> None:
        """Connect and log in, without sending anything.

        Raises:
            ChannelFailed: The server cannot be reached, or refuses the login.
        """
        with self._session(seconds) as server:
            server.noop()

    def mail(self, message: Message) -> EmailMessage:
        """Return a message as a mail; the same message has the same `Message-ID`."""
        # Python folds a longer subject before its first word, which some readers show as an empty one.
        mail = EmailMessage(policy=default.clone(max_line_length=_LONGEST_LINE))
        mail["Subject"] = message.subject
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = f"<{message.identity}@alerts.invalid>"
        # Keeps autoresponders from answering.
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.text)
        return mail

    @contextmanager
    def _session(self, seconds: float) -> Iterator[smtplib.SMTP]:
        parts = urlsplit(self.address)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        context = ssl.create_default_context(cafile=self.ca_file)
        try:
            with (
                smtplib.SMTP_SSL(host, port, timeout=seconds, context=context)
                if parts.scheme == "smtps"
                else smtplib.SMTP(host, port, timeout=seconds)
            ) as server:
                if parts.scheme == "smtp" and self.encrypted:
                    server.starttls(context=context)
                if self.password is not None:
                    server.login(unquote(parts.username or ""), self.password)
                yield server
        except smtplib.SMTPAuthenticationError as error:
            # The answer is not shown: a server may repeat the credentials in it.
            raise self._failed(f"the server refuses the login ({error.smtp_code})") from error
        except (OSError, smtplib.SMTPException) as error:
            refused = isinstance(error, smtplib.SMTPDataError)
            raise self._failed(f"{type(error).__name__}: {error}", refused=refused) from error

    def _failed(self, what: str, *, taken: bool = False, refused: bool = False) -> ChannelFailed:
        return ChannelFailed(
            what=what,
            where=f"mail through {addresses.shown(self.address)}",
            next_step="check address, sender, receivers and secret of the channel, and whether that server works",
            taken=taken,
            refused=refused,
        )
