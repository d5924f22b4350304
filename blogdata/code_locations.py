"""The code locations that `blogdata ui` serves: the platform's, and that of the analytics team if it is set up."""

from __future__ import annotations

import json
from pathlib import Path

from blogdata.output import console
from services.config import Settings
from services.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
PLATFORM, ANALYTICS = "definitions", "analytics"
"""Names of the locations; the state of sensors and schedules is stored by them."""


def options(home: Path) -> list[str]:
    """Return the options of `dagster dev` that name the locations.

    Args:
        home: `DAGSTER_HOME`, where a workspace of several locations is written.
    """
    project = ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        console.print("the analytics team's code location is not set up, and is not served: make setup")
        return ["-m", PLATFORM]
    analytics = {
        "module_name": "analytics.definitions",
        "location_name": ANALYTICS,
        # An interpreter of its own: it has none of the platform's dependencies.
        "executable_path": str(project / "interpreter"),
        "working_directory": str(ROOT),
    }
    locations = [{"module_name": "definitions", "location_name": PLATFORM}, analytics]
    workspace = home / "workspace.yaml"
    # JSON is YAML.
    content = json.dumps({"load_from": [{"python_module": location} for location in locations]}, indent=1)
    write_atomically(workspace, content.encode())
    return ["-w", str(workspace)]


def environment(settings: Settings, *, automatic: bool) -> dict[str, str]:
    """Return what the analytics team's location has to know: where gold is, and where its own files go.

    Args:
        settings: Settings of the deployment.
        automatic: Whether its sensor and its schedule are on from the start.
    """
    return {
        "ANALYTICS_GOLD": str(settings.lake / "gold"),
        "ANALYTICS_HOME": str(settings.home / "analytics"),
        "ANALYTICS_AUTOMATIC": str(automatic).lower(),
    }
