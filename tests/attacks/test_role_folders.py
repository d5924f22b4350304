"""What a role sees, as files: another user of the machine reads these, and nothing else of the deployment."""

from __future__ import annotations

import grp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import write_deltalake

from attacks.test_roles import TABLES, expected, secrets_of, stored
from blogdata.deliver import copies, exports
from blogdata.deliver.exports import Export
from blogdata.errors import ConfigurationError
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, sight_of
from blogdata.privacy.clearing import remove_copies
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from quality.contracts import EVERY

__all__ = ["deploy"]
NOBODY = 65534
AS_OTHER = """
import json, os, sys
import pyarrow.dataset as ds
given = json.load(sys.stdin)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(given["group"])
    os.setuid(given["user"])
found, denied = {}, []
for name, path in given["paths"].items():
    try:
        os.listdir(path)
        found[name] = [str(row) for row in ds.dataset(path, format="parquet").to_table().to_pylist()]
    except PermissionError:
        denied.append(name)
print(json.dumps({"found": found, "denied": denied}))
"""


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Tables with a row of somebody who may be shared, and of somebody who may not."""
    found = deploy("exports")
    for name in TABLES:
        write_deltalake(found.lake.path(name), stored(EVERY[name]))
    return found


@pytest.fixture(scope="module")
def outside() -> Iterator[Path]:
    """A folder that everybody can enter; those of the tests are closed to other users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def group() -> str:
    """Return a group that files can be given to without being root: one of one's own."""
    return grp.getgrgid(os.getgid()).gr_name


def rows(folder: Path, dataset: str) -> list[dict[str, Any]]:
    table = ds.dataset(folder / dataset / "current" / "rows", format="parquet").to_table()
    return [*table.to_pylist()]


def shown(row: Iterable[Any]) -> list[str | None]:
    """Write values so that they can be compared, whether a time has a zone or not."""
    return [None if value is None else str(value).removesuffix("+00:00") for value in row]


@pytest.fixture(scope="module")
def analysts(deployment: Deployment, outside: Path) -> Path:
    folder = outside / "analysts"
    assert written(deployment, "analyst", folder)
    return folder


def written(deployment: Deployment, role: str, folder: Path, of: str | None = None) -> list[str]:
    """Write what a role sees; return the datasets whose copies are new."""
    chosen = Export(role=role, folder=folder, group=of or group())
    return [name for name, is_new in copies.export(deployment.settings, chosen, deployment.session).items() if is_new]


@pytest.mark.parametrize("dataset", TABLES)
def test_a_folder_has_what_the_role_sees(deployment: Deployment, analysts: Path, dataset: str) -> None:
    if sight_of(EVERY[dataset], Role.ANALYST) is None:
        assert not (analysts / dataset).exists()
        return
    names, seen = expected(deployment, EVERY[dataset], Role.ANALYST)
    found = rows(analysts, dataset)
    assert {tuple(row) for row in found} == {tuple(names)}
    copied, wanted = ([shown(row) for row in each] for each in ((row.values() for row in found), seen))
    assert sorted(copied, key=repr) == sorted(wanted, key=repr)


def test_no_file_has_what_the_role_does_not_see(analysts: Path) -> None:
    seen = "".join(repr(rows(analysts, folder.name)) for folder in analysts.iterdir())
    hidden = [text for text in secrets_of(Role.ANALYST) if text not in seen]
    assert len(hidden) > 10
    content = b"".join(file.read_bytes() for file in analysts.rglob("*") if file.is_file())
    assert [text for text in hidden if text.encode() in content] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("member", "reads"), [(True, True), (False, False)], ids=["of the group", "of another group"])
def test_another_user_reads_the_folder_of_the_group_only(
    deployment: Deployment, analysts: Path, member: bool, reads: bool
) -> None:
    paths = {
        "copy": str(analysts / "silver.visits" / "current" / "rows"),
        "table": deployment.lake.path("silver.visits"),
        "home": str(deployment.settings.home),
    }
    given = {"user": NOBODY, "group": os.getgid() if member else NOBODY, "paths": paths}
    done = subprocess.run(
        [sys.executable, "-c", AS_OTHER], input=json.dumps(given), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer["denied"]) == {"table", "home"} | (set() if reads else {"copy"})
    assert bool(answer["found"].get("copy")) is reads


def test_what_has_not_changed_stays_and_readers_never_see_half(deployment: Deployment, analysts: Path) -> None:
    link = analysts / "gold.page_stats" / "current"
    before = link.readlink()
    assert written(deployment, "analyst", analysts) == []
    assert link.readlink() == before
    write_deltalake(deployment.lake.path("gold.page_stats"), stored(EVERY["gold.page_stats"]), mode="append")
    assert written(deployment, "analyst", analysts) == ["gold.page_stats"]
    assert len(rows(analysts, "gold.page_stats")) == 4
    assert (link.parent / before / "rows").is_dir(), "its readers go on"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(deployment: Deployment, outside: Path) -> None:
    folder = outside / "of another"
    folder.mkdir()
    os.chown(folder, NOBODY, -1)
    with pytest.raises(ConfigurationError, match="it belongs to another user"):
        written(deployment, "partner", folder)


def test_copies_of_persons_go_when_somebody_is_forgotten(deployment: Deployment, analysts: Path) -> None:
    persons = [contract for contract in EVERY.values() if any(column.singles_out for column in contract.columns)]
    assert rows(analysts, "silver.visits")
    remove_copies(deployment.settings, persons)
    assert not (analysts / "silver.visits" / "current").exists()
    assert rows(analysts, "gold.page_stats")
    assert copies.withdraw(deployment.settings, ["analyst"])
    assert [*analysts.rglob("*.parquet")] == []
    assert exports.known(deployment.settings) == ()
