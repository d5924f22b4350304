"""The deployment examples are consistent with each other and with the project. No container is built here."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from blogdata.operate import config, dagster_home
from docs.pages import ROOT, commands, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / "deployment"
EXAMPLE = FOLDER / "blogdata.env.example"
PAGE = "docs/how-to/deploy.md"
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
MANIFESTS = FOLDER / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text(encoding="utf-8"))
RESOURCES = [(MANIFESTS / file).read_text(encoding="utf-8") for file in KUSTOMIZATION["resources"]]
OBJECTS: list[dict[str, Any]] = [resource for text in RESOURCES for resource in yaml.safe_load_all(text)]
WORKLOADS = [resource for resource in OBJECTS if resource["kind"] in ("Deployment", "StatefulSet")]
OURS = {place[-1] for place in config.places(config.Settings)}
OF_POSTGRES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
HOME = "/var/lib/blogdata"


def lines(instruction: str) -> list[str]:
    """List the arguments of one kind of instruction in the Containerfile."""
    return re.findall(rf"^{instruction} +(.+)$", CONTAINERFILE, re.MULTILINE)


def example() -> dict[str, str]:
    rows = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (row.partition("=") for row in rows)}


def names(kind: str) -> set[str]:
    return {found["metadata"]["name"] for found in OBJECTS if found["kind"] == kind}


def test_the_image_copies_the_whole_package() -> None:
    copied = {word for line in lines("COPY") if "--from" not in line for word in shlex.split(line)[:-1]}
    assert not [name for name in copied if not (ROOT / name).exists()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {name.partition("/")[0] for name in packages} <= copied
    assert {"uv.lock", "pyproject.toml", "workspace.yaml"} <= copied


def test_the_image_runs_blogdata_as_ordinary_user() -> None:
    (entry,) = lines("ENTRYPOINT")
    assert yaml.safe_load(entry) == ["tini", "--", "blogdata"]
    (command,) = lines("CMD")
    parse(yaml.safe_load(command))
    assert CONTAINERFILE.rindex("\nUSER 10001") > CONTAINERFILE.rindex("\nFROM ")
    assert lines("VOLUME") == [HOME]
    (environment,) = lines("ENV")
    variables = dict(word.split("=", 1) for word in shlex.split(environment))
    assert variables["BLOGDATA_HOME"] == HOME
    assert variables.keys() - {"PATH"} <= OURS
    assert f"BLOGDATA_JARS={variables['BLOGDATA_JARS']}" in " ".join(lines("RUN"))
    assert "install --yes --no-install-recommends tini" in " ".join(lines("RUN"))


def test_the_example_environment_has_valid_settings(tmp_path: Path) -> None:
    found = example()
    assert found.keys() <= OURS | OF_POSTGRES
    settings = config.load({**found, "BLOGDATA_HOME": str(tmp_path)})
    assert settings.dagster_storage is not None
    for address in (settings.postgres.url, settings.dagster_storage):
        parts = urlsplit(str(address))
        assert parts.hostname in SERVICES
        assert parts.hostname in names("Service")
        assert (parts.username, parts.password, parts.path[1:]) == (
            found["POSTGRES_USER"], found["POSTGRES_PASSWORD"], found["POSTGRES_DB"],
        )  # fmt: skip
    assert found["POSTGRES_PASSWORD"] not in dagster_home.storage(settings)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_of_compose_uses_what_is_declared(name: str) -> None:
    service = SERVICES[name]
    assert ("image" in service) != ("build" in service)
    for volume in service["volumes"]:
        assert volume.partition(":")[0] in COMPOSE["volumes"]
    for other, wait in service.get("depends_on", {}).items():
        assert wait == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[other]
    assert EXAMPLE.name == f"{service['env_file']}.example"
    if "build" in service:
        context = (FOLDER / service["build"]["context"]).resolve()
        assert context == ROOT
        assert (context / service["build"]["dockerfile"]).is_file()
        parse(service["command"])
        assert f"home:{HOME}" in service["volumes"]
        (port,) = service["ports"]
        assert port.startswith("127.0.0.1:"), "its sessions would cross the network unencrypted"
        assert port.endswith(":" + lines("EXPOSE")[0])


def test_the_references_of_the_manifests_lead_somewhere() -> None:
    def named(objects: Iterable[dict[str, Any]]) -> set[str]:
        return {found["name"] for found in objects}

    secrets, images, claims = named(KUSTOMIZATION["secretGenerator"]), named(KUSTOMIZATION["images"]), set[str]()
    for workload in WORKLOADS:
        spec, pod = workload["spec"], workload["spec"]["template"]
        assert (spec["selector"]["matchLabels"], spec["replicas"]) == (pod["metadata"]["labels"], 1)
        volumes = pod["spec"].get("volumes", [])
        claims |= {volume["persistentVolumeClaim"]["claimName"] for volume in volumes}
        mounted = named(volumes) | named(claim["metadata"] for claim in spec.get("volumeClaimTemplates", ()))
        for container in pod["spec"]["containers"]:
            assert named(container["volumeMounts"]) <= mounted
            assert named(source["secretRef"] for source in container["envFrom"]) <= secrets
            ports = named(container["ports"])
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert container.get(probe, {}).get("httpGet", {}).get("port", next(iter(ports))) in ports
            if ":" not in container["image"]:
                assert container["image"] in images
                parse(container["args"])
    assert claims == names("PersistentVolumeClaim")


@pytest.mark.parametrize("line", [line for line in commands(PAGE) if " blogdata " in line])
def test_container_commands_of_the_page_parse(line: str) -> None:
    words = shlex.split(line)
    assert {"dagster", "deploy/dagster"} & {*words}
    parse(words[words.index("blogdata") + 1 :])
