"""Settings of the environment and of `blogdata.toml`; what cannot be used is refused with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.operate import config

PRIVATE = "hunter2hunter2"


def load(home: Path, text: str = "", **environ: str) -> config.Settings:
    home.mkdir(exist_ok=True)
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load({"BLOGDATA_HOME": str(home), "HOME": str(home), **environ})


def test_without_settings_everything_lies_under_the_home(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings == config.Settings(
        home=tmp_path,
        landing=tmp_path / "landing",
        lake=tmp_path / "lake",
        jars=tmp_path / ".cache" / "blogdata" / "jars",
    )
    assert settings.logs.filters_version == "default"


def test_settings_prefer_environment_then_file_then_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path.parent)
    text = """
        spark = {heap = "3g", master = "local[1]", conf = {"spark.sql.ansi.enabled" = false}}
        paths = {lake = "tables", landing = "elsewhere"}
    """
    settings = load(tmp_path, text, BLOGDATA_SPARK_HEAP="4g", BLOGDATA_LANDING="landed", master="1", BLOGDATA_JARS="")
    assert (settings.spark.heap, settings.spark.master) == ("4g", "local[1]")
    assert settings.spark.conf == (("spark.sql.ansi.enabled", "false"),)
    assert (settings.lake, settings.landing) == (tmp_path / "tables", tmp_path.parent / "landed")


def test_values_are_read_in_their_normal_form(tmp_path: Path) -> None:
    text = """
        automation.on = true
        history.begins = 2024-01-01
        landing = {ready = "next_exists", longest_line = "500k", largest_file = "1G"}
        site.hosts = ["Blog.example.org"]
        alerting.repeat_after = "4h"
        partner = {url = "https://example.com", secret = "shop.key-1"}
        [logs]
        format = "$host $request"
        zone = "Europe/Berlin"
        proxies = ["10.0.0.2", "2001:DB8:0::/32", "::ffff:192.0.2.0/120", "unix:"]
        exclude = {agents = ["My-Check"], paths = ["/admin/", "*.php"]}
        crawlers = {addresses = ["198.51.100.0/24"], robots_txt = false}
    """
    settings = load(tmp_path, text, BLOGDATA_AUTOMATIC="false")
    assert (settings.run_automatically, settings.first_day, settings.ready) == (False, "2024-01-01", "next_exists")
    assert (settings.longest_line, settings.largest_file) == (500 << 10, 1 << 30)
    assert settings.site_hosts == ("blog.example.org",)
    assert settings.logs == config.LogSettings(
        formats=("$host $request",),
        zone="Europe/Berlin",
        proxies=("10.0.0.2/32", "2001:db8::/32", "192.0.2.0/24", "unix:"),
        exclude=config.ExcludedRequests(agents=("my-check",), paths=("/admin/", "*.php")),
        crawlers=config.CrawlerSettings(addresses=("198.51.100.0/24",), robots_txt=False),
    )
    assert settings.logs.filters_version not in ("default", config.LogSettings(proxies=("unix:",)).filters_version)
    assert (settings.alerting.repeat_after, settings.partner.secret) == (14_400, "shop.key-1")


@pytest.mark.parametrize("misread", [*"*?[]{}\\|^%`\n", "%25"])
def test_a_path_that_spark_or_delta_would_misread_is_refused_at_once(tmp_path: Path, misread: str) -> None:
    for variable in ("BLOGDATA_HOME", "BLOGDATA_LAKE"):
        with pytest.raises(ConfigurationError, match="means something else") as refused:
            config.load({"BLOGDATA_HOME": str(tmp_path), variable: str(tmp_path / f"a{misread}b")})
        assert "next" in str(refused.value)
    assert load(tmp_path / "a b+c#d;e,f=g&h(i)é~!@$'").lake.name == "lake"


@pytest.mark.parametrize(
    ("given", "remote"),
    [("sc://host:15002/;use_ssl=true", "sc://host:15002/;use_ssl=true"), ("local[*]", None), ("", None)],
)
def test_an_sc_address_means_a_remote_server(tmp_path: Path, given: str, remote: str | None) -> None:
    assert load(tmp_path, SPARK_REMOTE=given).spark.remote == remote


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("SPARK_REMOTE", address) for address in ("sc://", "http://host:1", "sc://host:15002/path", "sc://host:1?a")),
        ("BLOGDATA_SPARK_HEAP", "2 GB"),
        *(("BLOGDATA_LONGEST_LINE", size) for size in ("2g", "16")),
        ("BLOGDATA_LANDING_READY", "soon"),
        ("BLOGDATA_MAVEN_MIRROR", "mirror.example.org"),
        ("BLOGDATA_LAKE", "s3://blog/lake"),
        ("BLOGDATA_LANDING", "abfss://blog@store/landing"),
        ("BLOGDATA_AUTOMATIC", "maybe"),
        ("BLOGDATA_HISTORY", "yesterday"),
        ("BLOGDATA_DAGSTER_STORAGE", f"mysql://u:{PRIVATE}@h/d"),
        ("BLOGDATA_POSTGRES", f"user:{PRIVATE}@host"),
    ],
)
def test_an_unusable_variable_is_refused_with_its_value_unless_it_may_be_private(
    tmp_path: Path, variable: str, value: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **{variable: value})
    assert caught.value.where == variable
    assert (value in caught.value.what) == (PRIVATE not in value)
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("[spark", "", "cannot be read"),
        ("[spork]", "spork", "no setting is called spork"),
        ("spark = 3", "spark", "spark is a section"),
        ('[spark]\nheep = "3g"', "spark.heep", "no setting is called heep"),
        ("[spark.conf]\na = {b = 1}", "spark.conf", "conf is not keys and values"),
        *(
            (f'[partner]\nsecret = "{name}"', "partner.secret", "secret is not a name")
            for name in ("../shop", "s" * 65)
        ),
        ('[postgres]\nurl = "db:5432"', "postgres.url", "url is no address of the kind postgresql:"),
        (f'[postgres]\nurl = "http://u:{PRIVATE}@db"', "postgres.url", "url is no address"),
        ('[tables]\ndevices = "a.b.c"', "tables.devices", "'a.b.c' is not the name of a table"),
        ('[tables]\nusers = "v"', "tables.users", "has no first day to load"),
        ('[staging]\nfolder = "x"', "staging.group", "group is missing"),
        ('[logs]\nproxies = ["10.0.0.2", "10.0.0.1/8"]', "logs.proxies", "'10.0.0.1/8' is no address or network"),
        ('[logs]\nzone = "Berlin"', "logs.zone", "'Berlin' is not a time zone"),
        ('[logs]\nexclude = "x"', "logs.exclude", "exclude is a section"),
        ('[logs.exclude]\naddresses = ["203.0.113.7/24"]', "logs.exclude.addresses", "has host bits set"),
        ('[logs.exclude]\npaths = ["admin/"]', "logs.exclude.paths", "'admin/' is not how a path begins"),
        ('[logs.exclude]\nagents = "x"', "logs.exclude.agents", "'x' cannot be used"),
        ("[logs.crawlers]\nmost_views = 0", "logs.crawlers.most_views", "0 cannot be used"),
        ('[site]\nhosts = ["https://blog.example.org"]', "site.hosts", "is not the name of a host"),
        ('[alerting]\nrepeat_after = "5s"', "alerting.repeat_after", "'5s' is not a number and a unit"),
        ('[alerts]\nname = "a"', "alerts", "alerts is a section"),
        ('alerts = "log"', "alerts", "alerts is a section"),
        ('[[alerts]]\nname = "a"\naddress = "json://h"\n' * 2, "alerts", "two channels with the name a"),
    ],
)
def test_an_unusable_key_is_refused_with_its_place(tmp_path: Path, text: str, place: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert caught.value.where == f"{tmp_path / 'blogdata.toml'}" + (f", {place}" if place else "")
    assert what in caught.value.what
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ('channel = "mail"', "no setting is called channel"),
        ('address = "slack://x"', "name is missing"),
        ('name = "a"', "address is missing"),
        ('name = "a"\naddress = "{secret}"', "is not an address of Apprise"),
        (f'name = "a"\naddress = "jsons://u:{PRIVATE}@h"', "address has a password"),
        (f'name = "a"\naddress = "slack://{PRIVATE}/{{secret}}"', "has {secret} where the secret belongs"),
        ('name = "a"\naddress = "slack://x"\nsecret = "s"', "has {secret} where the secret belongs"),
        ('name = "a"\naddress = "json://h/{secret}"\nsecret = "s"', "no TLS: jsons://"),
        ('name = "a"\naddress = "slack://x"\nleast_severity = "high"', "'high' cannot be used"),
    ],
)
def test_an_unusable_channel_is_refused(tmp_path: Path, table: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f'[[alerts]]\nname = "first"\naddress = "json://h"\n[[alerts]]\n{table}\n')
    assert what in caught.value.what
    assert "blogdata.toml, [[alerts]] number 2" in caught.value.where
    assert PRIVATE not in str(caught.value)


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="BLOGDATA_HOME"):
        config.load({"BLOGDATA_HOME": str(tmp_path / "file" / "home")})


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may write everywhere")
def test_an_unwritable_home_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="BLOGDATA_HOME"):
        config.load({"BLOGDATA_HOME": str(tmp_path)})
