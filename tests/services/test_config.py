from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.errors import ConfigurationError
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.ingestion.readiness_marker import Convention
from blogdata.publish.target import Engine
from blogdata.services import config
from resources import connections


def load(home: Path, **environ: str) -> config.Settings:
    return config.load({"BLOGDATA_HOME": str(home), "HOME": str(home), **environ})


def test_without_settings_everything_lies_under_the_home(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.landing == tmp_path / "landing"
    assert settings.lake == tmp_path / "lake"
    assert settings.jars == tmp_path / ".cache" / "blogdata" / "jars"
    assert settings.spark == config.SparkSettings()


def test_settings_prefer_environment_then_file_then_defaults(tmp_path: Path) -> None:
    (tmp_path / "blogdata.toml").write_text(
        '[spark]\nheap = "3g"\nport = 15002\nconf = {"spark.sql.ansi.enabled" = false}\n[paths]\nlake = "tables"\n'
    )
    settings = load(tmp_path, BLOGDATA_SPARK_HEAP="4G")
    assert settings.spark.heap == "4g"
    assert settings.spark.port == 15002
    assert settings.spark.conf == (("spark.sql.ansi.enabled", "false"),)
    assert settings.lake == tmp_path / "tables"


def test_the_readiness_convention_is_a_setting(tmp_path: Path) -> None:
    assert get_args(config.Readiness) == get_args(Convention)
    assert load(tmp_path).ready == "flag"
    (tmp_path / "blogdata.toml").write_text('[landing]\nready = "next_exists"\n')
    assert load(tmp_path).ready == "next_exists"
    assert load(tmp_path, BLOGDATA_LANDING_READY="flag").ready == "flag"
    with pytest.raises(ConfigurationError, match="flag, next_exists"):
        load(tmp_path, BLOGDATA_LANDING_READY="soon")


def test_the_bounds_of_landed_files_are_settings(tmp_path: Path) -> None:
    assert (load(tmp_path).longest_line, load(tmp_path).largest_file) == (16 << 20, 8 << 30)
    (tmp_path / "blogdata.toml").write_text('[landing]\nlongest_line = "500k"\nlargest_file = "1G"\n')
    assert (load(tmp_path).longest_line, load(tmp_path).largest_file) == (500 << 10, 1 << 30)
    for wrong in ("0m", "2g", "16", "a lot", "-1k"):
        with pytest.raises(ConfigurationError, match="is not a size"):
            load(tmp_path, BLOGDATA_LONGEST_LINE=wrong)


@pytest.mark.parametrize("misread", [*"*?[]{}\\|^%`\n", "%25"])
def test_a_path_that_spark_or_delta_would_misread_is_refused_at_once(tmp_path: Path, misread: str) -> None:
    for variable in ("BLOGDATA_HOME", "BLOGDATA_LAKE"):
        with pytest.raises(ConfigurationError, match="means something else") as refused:
            config.load({"BLOGDATA_HOME": str(tmp_path), variable: str(tmp_path / f"a{misread}b")})
        assert "next" in str(refused.value)
    assert load(tmp_path / "a b+c#d;e,f=g&h(i)é~!@$'").lake.name == "lake"


def test_an_sc_address_means_a_remote_server(tmp_path: Path) -> None:
    settings = load(tmp_path, SPARK_REMOTE="sc://spark.example.org:15002/;use_ssl=true")
    assert settings.spark.mode == "remote"
    assert settings.spark.remote == "sc://spark.example.org:15002/;use_ssl=true"


def test_a_local_address_means_the_own_server(tmp_path: Path) -> None:
    assert load(tmp_path, SPARK_REMOTE="local[*]").spark.remote is None


def test_the_mode_overrides_the_address(tmp_path: Path) -> None:
    settings = load(tmp_path, SPARK_REMOTE="sc://spark:15002", BLOGDATA_SPARK_MODE="classic")
    assert (settings.spark.mode, settings.spark.remote) == ("classic", None)


@pytest.mark.parametrize(
    "address", ["sc://", "sc:/host", "http://host:1", "sc://host:port", "sc://host:15002/path", "host:15002"]
)
def test_an_invalid_address_is_refused_with_an_example(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigurationError, match="sc://host:port") as caught:
        load(tmp_path, SPARK_REMOTE=address)
    assert caught.value.where == "SPARK_REMOTE"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BLOGDATA_SPARK_PORT", "fifteen"),
        ("BLOGDATA_SPARK_PORT", "70000"),
        ("BLOGDATA_SPARK_PORT", "1.5"),
        ("BLOGDATA_SPARK_HEAP", "2"),
        ("BLOGDATA_SPARK_HEAP", "100m"),
        ("BLOGDATA_SPARK_MODE", "yarn"),
        ("BLOGDATA_SPARK_START_SECONDS", "-1"),
        ("BLOGDATA_WRITES", "twice"),
        ("BLOGDATA_JAVA", "21"),
        ("BLOGDATA_MAVEN_MIRROR", "mirror.example.org"),
        ("BLOGDATA_LAKE", "s3://blog/lake"),
        ("BLOGDATA_LANDING", "abfss://blog@store/landing"),
    ],
)
def test_an_unusable_value_is_refused_naming_its_variable(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **{variable: value})
    assert caught.value.where == variable
    assert value in caught.value.what


def test_an_unknown_setting_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "blogdata.toml").write_text('[spark]\nheep = "3g"\n')
    with pytest.raises(ConfigurationError, match="heep"):
        load(tmp_path)


@pytest.mark.parametrize("secret", ["../shop", "/etc/passwd", "a b", "s" * 65])
def test_a_secret_that_is_no_file_name_is_refused(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "blogdata.toml"
    file.write_text(f'[partner]\nurl = "https://example.com"\nsecret = "{secret}"\n')
    with pytest.raises(ConfigurationError, match="the secret of a") as refused:
        load(tmp_path)
    assert "partner" in refused.value.where
    file.write_text('[partner]\nurl = "https://example.com"\nsecret = "shop.key-1"\n')
    assert load(tmp_path).partner.secret == "shop.key-1"


def test_proxies_are_addresses_and_networks_in_their_normal_form(tmp_path: Path) -> None:
    file = tmp_path / "blogdata.toml"
    file.write_text('[logs]\nproxies = ["10.0.0.2", "2001:DB8:0::/32", "::ffff:192.0.2.0/120", "unix:"]\n')
    assert load(tmp_path).logs.proxies == ("10.0.0.2/32", "2001:db8::/32", "192.0.2.0/24", "unix:")


@pytest.mark.parametrize("proxy", ["proxy.example.net", "10.0.0.1/8", "10.0.0.2:80", "fe80::1%eth0/64"])
def test_a_proxy_that_is_no_address_is_refused_naming_it(tmp_path: Path, proxy: str) -> None:
    (tmp_path / "blogdata.toml").write_text(f'[logs]\nproxies = ["10.0.0.2", "{proxy}"]\n')
    with pytest.raises(ConfigurationError, match=re.escape(proxy)) as refused:
        load(tmp_path)
    assert refused.value.where.endswith("logs.proxies")


def test_a_settings_file_without_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "blogdata.toml").write_text("[spark\n")
    with pytest.raises(ConfigurationError, match=r"blogdata\.toml"):
        load(tmp_path)


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="BLOGDATA_HOME"):
        load(tmp_path / "file" / "home")


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may write everywhere")
def test_an_unwritable_home_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="BLOGDATA_HOME"):
        load(tmp_path)


def test_the_writes_setting_selects_the_lakes_engine(tmp_path: Path) -> None:
    chosen = [load(tmp_path, BLOGDATA_WRITES=engine.value) for engine in Engine]
    lakes = [connections(settings)["lake"] for settings in chosen]
    assert [lake.engine for lake in lakes if isinstance(lake, LakeResource)] == list(Engine)


@given(port=st.integers(0, 65535), heap=st.integers(512, 100_000))
def test_valid_ports_and_heaps_are_accepted(tmp_path_factory: pytest.TempPathFactory, port: int, heap: int) -> None:
    home = tmp_path_factory.getbasetemp()
    settings = load(home, BLOGDATA_SPARK_PORT=str(port), BLOGDATA_SPARK_HEAP=f"{heap}m")
    assert (settings.spark.port, settings.spark.heap) == (port, f"{heap}m")


def test_the_site_and_the_lists_of_referrers_are_read(tmp_path: Path) -> None:
    (tmp_path / "blogdata.toml").write_text(
        '[site]\nhosts = ["Blog.example.org"]\n[logs]\nreferrers = ["spam.txt", "/lists/search.yml"]\n',
        encoding="utf-8",
    )
    site = config.load({"BLOGDATA_HOME": str(tmp_path)}).site
    assert site.hosts == ("blog.example.org",)
    assert site.referrers == (tmp_path / "spam.txt", Path("/lists/search.yml"))


@pytest.mark.parametrize("hosts", ['["https://blog.example.org"]', '["blog.example.org:443"]', '"blog.example.org"'])
def test_invalid_hosts_of_the_site_are_refused(tmp_path: Path, hosts: str) -> None:
    (tmp_path / "blogdata.toml").write_text(f"[site]\nhosts = {hosts}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="host") as raised:
        config.load({"BLOGDATA_HOME": str(tmp_path)})
    assert "site.hosts" in str(raised.value)
