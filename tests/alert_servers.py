"""Real HTTP and SMTP servers on this machine that receive alerts, with and without TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from served_http import served

USER, PASSWORD = "robot", "correct horse battery"


@dataclass
class Posted:
    """The requests that a web server received, and its next answers."""

    address: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answers still to be given, each once; afterwards it is 204."""
    hangs_seconds: float = 0.0


@contextmanager
def web_server() -> Iterator[Posted]:
    """Run a web server."""
    posted = Posted(address="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(posted.hangs_seconds)
            posted.headers.append(dict(self.headers))
            status, headers = posted.answers.pop(0) if posted.answers else (204, {})
            if status < 300:
                posted.bodies.append(json.loads(body))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with served(Handler) as address:
        posted.address = f"{address}/hook"
        yield posted


@dataclass
class Mailbox:
    """The mails that a mail server received, and the recipients it refuses."""

    port: int = 0
    certificate: Path | None = None
    mails: list[EmailMessage] = field(default_factory=list)
    receivers: list[list[str]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    logins: list[str] = field(default_factory=list)

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.receivers.append(list(envelope.rcpt_tos))
        return "250 OK"

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        right = data.login.decode() == USER and data.password.decode() == PASSWORD
        # Simulates a server that echoes a request, secrets included.
        return AuthResult(success=right, handled=right, message=None if right else f"535 no: {data.password.decode()}")


@contextmanager
def mail_server(*, certified_in: Path | None = None) -> Iterator[Mailbox]:
    """Run a mail server. With a certificate folder it requires STARTTLS and a login."""
    mailbox = Mailbox()
    options: dict[str, Any] = {}
    if certified_in is not None:
        mailbox.certificate, context = certificate(certified_in)
        options = {
            "tls_context": context,
            "require_starttls": True,
            "authenticator": mailbox.authenticate,
            "auth_required": True,
        }
    controller = _Controller(mailbox, hostname="127.0.0.1", port=0, **options)
    controller.start()
    mailbox.port = controller.port
    yield mailbox
    controller.stop(no_assert=True)


class _Controller(Controller):
    def _trigger_server(self) -> None:
        # The server chose a free port itself; the controller would try the requested port 0.
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for this machine; return its file and a server's TLS context that uses it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    return file, context
