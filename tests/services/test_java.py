from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.services import java
from blogdata.services.config import Settings


def test_the_bundled_java_is_taken_without_another(settings: Settings) -> None:
    found = java.find(replace(settings, java="auto", java_home=None, search_path=""))
    assert found.source == "bundled"
    assert found.version >= java.LEAST_VERSION


def test_a_missing_system_java_names_searched_places(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="BLOGDATA_JAVA=system") as caught:
        java.find(replace(settings, java="system", java_home=str(tmp_path), search_path=""))
    assert str(tmp_path) in caught.value.where
