"""The owner's browser signs in, and no other browser can; without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from blogdata.operate import ui_guard
from guarded import Guarded, serving

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.ui
ATTACK = """<!doctype html><title>waits</title><script>
const body = JSON.stringify({query: "{ version }"});
const tried = [
  fetch("URL/graphql", {method: "POST", mode: "no-cors", credentials: "include", body}),
  fetch("URL/graphql", {method: "POST", credentials: "include", headers: {"content-type": "application/json"}, body})
    .then((answer) => answer.text()),
  new Promise((done, failed) => {
    const socket = new WebSocket("WS/graphql", "graphql-ws");
    socket.onopen = done; socket.onerror = failed;
  }),
];
Promise.allSettled(tried).then((all) => { document.title = all.map((one) => one.status).join(" "); });
</script>"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def browser(chromium: Callable[[], Chrome]) -> Chrome:
    return chromium()


def until(browser: Chrome, holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline, f"no {what}: {browser.title} at {browser.current_url}"
        time.sleep(0.4)


def shows(browser: Chrome, url: str, *texts: str) -> None:
    """Open a page and wait until it shows all the texts."""
    browser.get(url)
    page = "return document.body ? document.body.innerText : ''"
    for text in texts:
        until(browser, lambda text=text: text in browser.execute_script(page), text)  # type: ignore[misc]


def test_a_link_opens_the_pages_and_they_stay_open(browser: Chrome, served: Guarded, tmp_path: Path) -> None:
    shows(browser, f"{served.url}/locations", "its owner's", "blogdata ui --open")
    # As `blogdata ui --open` does it: from a file, which is another site.
    page = tmp_path / "sign-in.html"
    link = ui_guard.sign_in_link(served.url, served.token)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">')
    shows(browser, page.as_uri(), "Overview")
    assert browser.current_url.startswith(served.url)
    assert "link=" not in browser.current_url
    shows(browser, f"{served.url}/locations", "analytics", "Loaded")
    shows(browser, f"{served.url}/jobs", "newsletter")


def test_a_foreign_page_reaches_nothing(browser: Chrome, served: Guarded, tmp_path: Path) -> None:
    shows(browser, ui_guard.sign_in_link(served.url, served.token), "Overview")
    attack = ATTACK.replace("URL", served.url).replace("WS", served.url.replace("http", "ws"))
    (tmp_path / "attack.html").write_text(attack)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as foreign:
        Thread(target=foreign.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{foreign.server_port}/attack.html")
        # An answer that the page may not read counts as fulfilled, but the request was refused.
        until(browser, lambda: browser.title == "fulfilled rejected rejected", "three refusals")
        foreign.shutdown()
    assert not served.instance.get_runs()
