"""The owner's browser signs in, and no other browser can; without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from blogdata.operate import ui_guard
from guarded import Guarded, serving

if TYPE_CHECKING:
    from ui.browser import Browser

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
    pytest.importorskip("selenium", reason="needs selenium: make setup-ui")
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def browser(served: Guarded, tmp_path: Path) -> Iterator[Browser]:
    from ui.browser import Browser, chromium

    with chromium() as driver:
        yield Browser(driver, served.url, tmp_path)


def test_a_link_opens_the_pages_and_they_stay_open(browser: Browser, served: Guarded, tmp_path: Path) -> None:
    browser.open("/locations", "its owner's", "blogdata ui --open")
    # As `blogdata ui --open` does it: from a file, which is another site.
    page = tmp_path / "sign-in.html"
    link = ui_guard.sign_in_link(served.url, served.token)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">')
    browser.open(page.as_uri(), "Overview")
    assert browser.driver.current_url.startswith(served.url)
    assert "link=" not in browser.driver.current_url
    browser.open("/locations", "analytics", "Loaded")
    browser.picture("signed-in")
    browser.open("/jobs", "newsletter")


def test_a_foreign_page_reaches_nothing(browser: Browser, served: Guarded, tmp_path: Path) -> None:
    browser.open(ui_guard.sign_in_link("", served.token), "Overview")
    attack = ATTACK.replace("URL", served.url).replace("WS", served.url.replace("http", "ws"))
    (tmp_path / "attack.html").write_text(attack)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as foreign:
        Thread(target=foreign.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{foreign.server_port}/attack.html")
        # An answer that the page may not read counts as fulfilled, but the request was refused.
        browser.until(lambda: browser.driver.title == "fulfilled rejected rejected", "three refusals")
        foreign.shutdown()
    assert not served.instance.get_runs()
