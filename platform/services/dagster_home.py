"""Dagster's home of a deployment: its storage and the policies of `deploy/dagster.yaml`."""

from __future__ import annotations

import json
from pathlib import Path

from services.config import Settings
from services.files import write_atomically
from services.jars import package_folder


def render(settings: Settings) -> Path:
    """Write `dagster.yaml` for a deployment; an unchanged one is left alone.

    Args:
        settings: Of the deployment.

    Returns:
        The folder to give as `DAGSTER_HOME`.
    """
    folder = settings.home / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    template = (package_folder("deploy") / "dagster.yaml").read_text(encoding="utf-8")
    # Inside a quoted YAML scalar a path is escaped as in JSON.
    content = template.replace("{home}", json.dumps(str(settings.home), ensure_ascii=False)[1:-1]).encode()
    target = folder / "dagster.yaml"
    if not target.is_file() or target.read_bytes() != content:
        write_atomically(target, content)
    return folder
