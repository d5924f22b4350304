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
from blogdata.erasure.clearing import remove_copies
from blogdata.errors import ConfigurationError
from blogdata.operations import copies
from blogdata.operations.export import ROLES, write
from blogdata.operations.replicate import READER
from blogdata.operations.role_sight import SECRET
from blogdata.patterns.security import role_folders
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, sight_of
from blogdata.secrets.secret import Secret
from blogdata.services import config, copy_settings, exports, secrets
from blogdata.services.copy_settings import Export
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
    """The folder of the analysts."""
    folder = outside / "analysts"
    assert written(deployment, "analyst", folder)
    return folder


def written(deployment: Deployment, role: str, folder: Path, of: str | None = None) -> list[str]:
    """Write what a role sees; return the datasets whose copies are new."""
    chosen = Export(role=role, folder=folder, group=of or group())
    return [name for name, is_new in write(deployment.settings, chosen, deployment.session).items() if is_new]


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


def test_copies_of_other_rights_go(deployment: Deployment, analysts: Path) -> None:
    home, unseen = analysts / "gold.page_stats", analysts / "bronze.visits" / "1-0-0" / "rows"
    assert sight_of(EVERY["bronze.visits"], Role.ANALYST) is None
    unseen.mkdir(parents=True)
    left = (home / "0-left-by-a-kill-00000000") / "rows"
    left.mkdir(parents=True)
    current = home / "current"
    old = home / "0-before-00000000"
    current.resolve().rename(old)
    current.unlink()
    current.symlink_to(old.name)
    written(deployment, "analyst", analysts)
    assert (unseen.exists(), left.exists(), old.exists()) == (False, False, False)
    assert len(rows(analysts, "gold.page_stats")) == 4
    left.mkdir(parents=True)
    assert role_folders.write(analysts, "gold.page_stats", current.readlink().name, os.getgid(), unwanted) is False
    assert not left.exists()
    assert len(rows(analysts, "gold.page_stats")) == 4


def unwanted(folder: Path) -> None:
    pytest.fail(f"{folder} is written")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(deployment: Deployment, outside: Path) -> None:
    folder = outside / "of another"
    folder.mkdir()
    os.chown(folder, NOBODY, -1)
    with pytest.raises(ConfigurationError, match="it belongs to another user"):
        written(deployment, "partner", folder)


def test_a_folder_that_others_may_rename_is_refused(tmp_path: Path) -> None:
    settings, shared = config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")}), tmp_path / "shared"
    shared.mkdir()
    new = Export(role="partner", folder=shared / "of" / "partners", group=group())
    shared.chmod(0o777)
    with pytest.raises(ConfigurationError, match=f"other users may rename {shared}"):
        exports.remember(settings, new)
    # As of /tmp: only its owner may.
    shared.chmod(0o1777)
    exports.remember(settings, new)
    assert exports.known(settings) == (new,)


def test_other_folders_are_refused(deployment: Deployment, analysts: Path, outside: Path) -> None:
    (outside / "notes").mkdir()
    (outside / "notes" / "of mine").touch()
    for folder, told in {
        deployment.settings.home / "x": "its folder is to be elsewhere",
        analysts: "it is for the role analyst",
        outside: "it is within the folder of another role",
        outside / "notes": "there are other files",
    }.items():
        with pytest.raises(ConfigurationError, match=told):
            written(deployment, "partner", folder)
    with pytest.raises(ConfigurationError, match="this machine has no group no-such-group"):
        written(deployment, "partner", outside / "x", "no-such-group")
    assert not (outside / "x").exists()
    assert (outside / "notes" / "of mine").exists()


def test_the_settings_name_readers_folders_and_groups(tmp_path: Path) -> None:
    file, where = tmp_path / "blogdata.toml", {"BLOGDATA_HOME": str(tmp_path)}
    file.write_text('[copies.analyst]\nfolder = "../of analysts"\ngroup = "analysts"\n')
    (named,) = config.load(overrides=where).copies
    assert named == Export(role="analyst", folder=tmp_path.parent / "of analysts", group="analysts")
    assert {*ROLES, READER} == copy_settings.KEYS
    for text, told in {
        '[copies.analyst]\nfolder = "x"': "analyst needs a folder and a group",
        '[copies]\nanalyst = "x"': "analyst needs a folder and a group",
        '[copies.owner]\nfolder = "x"\ngroup = "y"': "Unknown setting 'owner'",
    }.items():
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=told):
            config.load(overrides=where)


def test_copies_of_persons_go_when_somebody_is_forgotten(deployment: Deployment, analysts: Path) -> None:
    persons = [contract for contract in EVERY.values() if any(column.singles_out for column in contract.columns)]
    assert rows(analysts, "silver.visits")
    remove_copies(deployment.settings, persons)
    assert not (analysts / "silver.visits" / "current").exists()
    assert rows(analysts, "gold.page_stats")
    assert copies.withdraw(deployment.settings, ["analyst"])["folders"] == str(analysts)
    assert [*analysts.rglob("*.parquet")] == []
    assert exports.known(deployment.settings) == ()


@pytest.mark.campaign
def test_a_new_key_of_masks_writes_masked_copies_anew(deployment: Deployment, outside: Path) -> None:
    folder, masked, plain = outside / "engineers", "silver.visits", "gold.page_stats"
    assert {masked, plain} <= {*written(deployment, "engineer", folder)}
    before = {name: (folder / name / "current").resolve() for name in (masked, plain)}
    assert secrets.files(deployment.settings).add(SECRET, Secret("another-key-of-masks-" * 2), after=1)
    written(deployment, "engineer", folder)
    after = {name: (folder / name / "current").resolve() for name in (masked, plain)}
    assert (after[masked] != before[masked], after[plain]) == (True, before[plain])
    assert not before[masked].exists()
