"""Operations as Dagster jobs: each is launched once on one deployment, and says what it did.

Pseudo-Anonymizer: a replaced key of tokens is noticed, and a rotation replaces every token.
"""

from __future__ import annotations

import grp
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.table.lake import Lake
from lineage.command_line import Said
from lineage.conftest import Deploy, deploy, said
from lineage.deployment import Deployment
from lineage.tokens import OF_USERS, deliver, marks, refused, replace_key, tokens
from quality.keys import VISITOR_KEY

__all__ = ["deploy", "said"]
Started = Callable[..., tuple[bool, dict[str, Any], str]]
GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    made = deploy("jobs")
    deliver(made, "2026-01-05", {"user-1": "ann", "user-2": "bob"})
    assert made.run(for_=OF_USERS).problems == []
    return made


@pytest.fixture
def stats(deployment: Deployment) -> Iterator[str]:
    folder = deployment.lake.path("gold.page_stats")
    numbers = {name: [9] for name in ("events", "visits", "users", "hours_present")}
    rows = pa.table({"event_date": ["2026-01-05"], "page": ["/a"], "share": [1.0], **numbers})
    write_deltalake(folder, rows, partition_by=["event_date"])
    yield "gold.page_stats"
    shutil.rmtree(folder)


@pytest.fixture
def started(said: Said) -> Started:
    def start(*words: str) -> tuple[bool, dict[str, Any], str]:
        code, out, errors = said("job", *words, "--json")
        answer = json.loads(out)
        assert (errors, code) == ("", not answer["ok"])
        return answer["ok"], answer["result"], "\n".join(answer["problems"])

    return start


def test_jobs_are_listed_with_their_configuration(deployment: Deployment, said: Said) -> None:
    listed = json.loads(said("job", "--json")[1])
    assert listed["retention"]["config"] == {"only_plan": "Only show which partitions have expired, and remove nothing"}
    assert listed.keys() >= {"data_docs", "freeze", "lineage", "maintain", "profiles", "replay", "report"}
    assert "refresh" not in listed
    for words, fault in {
        ("retentoin",): "did you mean retention",
        ("rotate",): "key is missing",
        ("rotate", "key"): "is no KEY=VALUE",
        ("data_docs", "newest=many"): "'many' is no number",
    }.items():
        code, _, errors = said("job", *words)
        assert (code, fault in errors) == (2, True), errors


@pytest.mark.campaign
def test_copies_go_where_the_settings_say_and_nowhere_else(
    deployment: Deployment, started: Started, stats: str, tmp_path: Path
) -> None:
    done, _, why = started("replicate")
    assert (done, "a run cannot choose where copies go" in why) == (False, True)
    file = deployment.settings.home / "blogdata.toml"
    before = file.read_text() if file.exists() else ""
    file.write_text(f'{before}\n[staging]\nfolder = "{tmp_path}"\ngroup = "{GROUP}"\n')
    done, result, why = started("replicate", f"datasets={stats}")
    assert (done, why, result["copies"]) == (True, "", [{"dataset": stats, "written": True}])
    assert Lake(root=str(tmp_path)).version(stats) == 0
    file.write_text(before)


def test_a_dataset_is_shared(deployment: Deployment, started: Started, stats: str) -> None:
    _, result, _ = started("share", f"dataset={stats}")
    (share,) = result["shares"]
    assert (share["dataset"], share["rows"], Path(share["manifest"]).is_dir()) == (stats, 1, True)
    assert (Path(deployment.lake.root) / "views.sql").is_file()
    assert started("share", f"dataset={stats}", "withdraw=true")[1]["shared"] == 0


def test_a_replaced_key_is_noticed_before_anything_is_written(deployment: Deployment) -> None:
    before = {name: deployment.lake.version(name) for name in OF_USERS}
    key = replace_key(deployment, "another-key-of-the-same-version-" * 2)
    problems = deployment.run(select=OF_USERS).problems
    assert all(refused(problems, dataset) for dataset in OF_USERS)
    assert {name: deployment.lake.version(name) for name in OF_USERS} == before
    replace_key(deployment, key)


def test_a_rotation_replaces_every_token(deployment: Deployment, started: Started) -> None:
    """That joins and histories stay as they were is shown where one is killed."""
    old = tokens(deployment)
    done, result, why = started("rotate", f"key={VISITOR_KEY}")
    assert (done, why) == (True, "")
    assert {name for row in result["plan"] for name in row["datasets"].split(", ")} >= {"silver.users"}
    assert {version for name in OF_USERS for version in marks(deployment, name)} == {"2"}
    new = tokens(deployment)
    assert (len(new), old & new) == (len(old), set())
    assert deployment.problems() == []
