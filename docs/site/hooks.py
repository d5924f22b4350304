"""MkDocs hooks: folders in the menu, repository files as pages, and diagrams that load nothing from another host.

Pages link to code, tests and other files of the repository by relative paths, which repository hosts resolve. On the
site each linked file becomes a page with its highlighted code, and the links lead there.
"""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from blogdata.operate import config as settings_module
from blogdata.operate import jars

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
MERMAID = "assets/mermaid.min.js"
CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".java": "java", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh"}
_origins: dict[str, Path] = {}
"""The repository file that each generated page shows, by the page's path."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the folders in the menu by their pages."""
    config.nav = _expanded(config.nav, set(_entries(config.nav)))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the script of the diagrams, and a page for each repository file that a page links to."""
    files.append(File.generated(config, MERMAID, content=_mermaid()))
    _origins.clear()
    waiting = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")]
    for file in files.documentation_pages():
        waiting += _linked(file.content_string, DOCS / posixpath.dirname(file.src_uri))
    while waiting:
        origin = waiting.pop()
        uri = _uri(origin)
        if uri in _origins:
            continue
        _origins[uri] = origin
        content = _content(origin)
        files.append(File.generated(config, uri, content=content))
        waiting += _linked(content, _folder(origin))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Rewrite the links to repository files, so that they lead to their pages; hide a menu without a section."""
    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])
    uri = page.file.src_uri
    folder = _folder(_origins[uri]) if uri in _origins else DOCS / posixpath.dirname(uri)
    rewritten = lambda match: _rewritten(match, folder, uri)  # noqa: E731
    return "".join(part if code else LINK.sub(rewritten, part) for part, code in _parts(markdown))


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Load the script of the diagrams on pages that have one."""
    if '<pre class="mermaid">' not in output:
        return output
    script = posixpath.relpath(MERMAID, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)


def _entries(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _entries(item)


def _expanded(nav: Any, named: set[str]) -> Any:
    if isinstance(nav, list):
        parts = [_expanded(item, named) for item in nav]
        return [page for part in parts for page in (part if isinstance(part, list) else [part])]
    if isinstance(nav, dict):
        return {title: _expanded(item, named) for title, item in nav.items()}
    if not nav.endswith("/"):
        return nav
    pages = sorted((DOCS / nav).glob("*.md"), key=lambda page: (page.stem != "index", _title(page).lower()))
    return [nav + page.name for page in pages if nav + page.name not in named]


def _title(page: Path) -> str:
    match = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else page.stem


def _parts(markdown: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for match in CODE.finditer(markdown):
        yield markdown[end : match.start()], False
        yield match[0], True
        end = match.end()
    yield markdown[end:], False


def _resolved(path: str, folder: Path) -> Path | None:
    """Return the file that a link leads to; None for addresses, and for what does not exist."""
    target = Path(os.path.normpath(folder / path))
    return target if "://" not in path and target.is_relative_to(ROOT) and target.exists() else None


def _linked(markdown: str, folder: Path) -> list[Path]:
    texts = (part for part, code in _parts(markdown) if not code)
    found = (_resolved(match["path"], folder) for text in texts for match in LINK.finditer(text))
    return [file for file in found if file is not None and not file.is_relative_to(DOCS)]


def _rewritten(match: re.Match[str], folder: Path, uri: str) -> str:
    target = _resolved(match["path"], folder)
    if target is None:
        return match[0]
    if not target.is_relative_to(DOCS):
        to = _uri(target)
    elif target.is_dir():
        to = (target / "index.md").relative_to(DOCS).as_posix()
    else:
        to = target.relative_to(DOCS).as_posix()
    return f"]({posixpath.relpath(to, posixpath.dirname(uri) or '.')}{match['anchor'] or ''})"


def _uri(origin: Path) -> str:
    path = origin.relative_to(ROOT).as_posix()
    return path.lower() if path in ("CHANGELOG.md", "CONTRIBUTING.md") else f"source/{path}.md"


def _folder(origin: Path) -> Path:
    return origin if origin.is_dir() else origin.parent


def _content(origin: Path) -> str:
    if origin.suffix == ".md":
        return origin.read_text(encoding="utf-8")
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {origin.name}\n\n`{origin.relative_to(ROOT)}`\n\n"
    if origin.is_dir():
        shown = sorted(file for file in origin.iterdir() if not file.name.startswith((".", "_")))
        return head + "".join(f"- [{file.name}]({file.name})\n" for file in shown)
    language = LANGUAGES.get(origin.suffix, "text")
    return f"{head}~~~~~~~~ {language}\n{origin.read_text(encoding='utf-8', errors='replace')}\n~~~~~~~~\n"


def _mermaid() -> bytes:
    """Take the script from its package, which is fetched once and pinned by checksum like Spark's jars."""
    settings = settings_module.load()
    (jar,) = jars.download_missing(settings, DOCS / "site" / "jars.lock").files("tool")
    with zipfile.ZipFile(jar) as package:
        (name,) = (name for name in package.namelist() if name.endswith("/dist/mermaid.min.js"))
        return package.read(name)
