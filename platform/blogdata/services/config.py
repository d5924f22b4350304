"""Settings of one deployment: read once from the environment and `blogdata.toml`, then passed as a value.

The environment overrides the file, the file overrides the defaults. Only this module reads settings from them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from blogdata.errors import ConfigurationError
from blogdata.secrets import secret_files
from blogdata.services import (
    alert_settings,
    copy_settings,
    files,
    log_settings,
    partner_settings,
    postgres_settings,
    secret_settings,
    setting_values,
    site_settings,
    table_settings,
    trust,
)
from blogdata.services.alert_settings import AlertSettings
from blogdata.services.copy_settings import Export
from blogdata.services.log_settings import LogSettings
from blogdata.services.partner_settings import PartnerSettings
from blogdata.services.postgres_settings import PostgresSettings
from blogdata.services.secret_settings import SecretSettings
from blogdata.services.site_settings import SiteSettings
from blogdata.services.table_settings import TableSettings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SparkMode = Literal["local", "remote", "classic"]
JavaChoice = Literal["auto", "system", "bundled"]
Writes = Literal["transaction", "checkpoint"]
Readiness = Literal["flag", "next_exists"]

_ENVIRONMENT = {
    "BLOGDATA_LANDING": ("paths", "landing"),
    "BLOGDATA_LAKE": ("paths", "lake"),
    "BLOGDATA_HISTORY": ("history", "begins"),
    "BLOGDATA_AUTOMATIC": ("automation", "on"),
    "BLOGDATA_JARS": ("paths", "jars"),
    "BLOGDATA_LANDING_READY": ("landing", "ready"),
    "BLOGDATA_LONGEST_LINE": ("landing", "longest_line"),
    "BLOGDATA_LARGEST_FILE": ("landing", "largest_file"),
    "BLOGDATA_JAVA": ("java", "use"),
    "BLOGDATA_MAVEN_MIRROR": ("java", "maven_mirror"),
    "BLOGDATA_SPARK_MODE": ("spark", "mode"),
    "BLOGDATA_SPARK_MASTER": ("spark", "master"),
    "BLOGDATA_SPARK_HEAP": ("spark", "heap"),
    "BLOGDATA_SPARK_PORT": ("spark", "port"),
    "BLOGDATA_SPARK_START_SECONDS": ("spark", "start_seconds"),
    "BLOGDATA_WRITES": ("spark", "writes"),
    "SPARK_REMOTE": ("spark", "remote"),
    "BLOGDATA_DAGSTER_STORAGE": ("dagster", "storage"),
    "BLOGDATA_STEPS_AT_ONCE": ("dagster", "steps_at_once"),
    "BLOGDATA_PARTNER": ("partner", "url"),
    "BLOGDATA_POSTGRES": ("postgres", "url"),
    "BLOGDATA_POSTGRES_PORT": ("postgres", "port"),
    "BLOGDATA_SECRETS": ("secrets", "provider"),
    "BLOGDATA_OPENBAO": ("secrets", "address"),
    secret_files.SERVER_TOKEN: ("secrets", "token"),
}
_FILE_KEYS = {
    "paths": {"landing", "lake", "jars"},
    "history": {"begins"},
    "automation": {"on"},
    "landing": {"ready", "longest_line", "largest_file"},
    "java": {"use", "maven_mirror"},
    "spark": {"mode", "remote", "master", "heap", "port", "start_seconds", "writes", "conf"},
    "dagster": {"storage", "secret", "steps_at_once"},
    "secrets": secret_settings.KEYS,
    "postgres": postgres_settings.KEYS,
    "tables": table_settings.KEYS,
    "alerting": alert_settings.ALERTING_KEYS,
    "partner": partner_settings.KEYS,
    "copies": copy_settings.KEYS,
    "site": site_settings.KEYS,
    "logs": site_settings.LOG_KEYS | log_settings.KEYS,
}


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """How a Spark session is opened.

    Args:
        mode: `local` (this deployment's own Spark Connect server), `remote` (an external server, at `remote`) or
            `classic` (a session inside the process, on `master`).
        remote: `sc://host:port` of the server in mode `remote`, else None.
        port: Port of the local server; 0 chooses a free one.
        start_seconds: Seconds until a starting server counts as failed.
        writes: Where rows are audited: inside Delta's `transaction` (needs the engine's jar), or in a `checkpoint` of
            the rows, where Spark may not load that jar.
    """

    mode: SparkMode = "local"
    remote: str | None = None
    master: str = "local[*]"
    heap: str = "2g"
    port: int = 0
    start_seconds: float = 120.0
    writes: Writes = "transaction"
    conf: tuple[tuple[str, str], ...] = ()
    service: str = "spark"

    @property
    def heap_bytes(self) -> int:
        """The heap in bytes."""
        return _mebibytes(self.heap) << 20


def _mebibytes(heap: str) -> int:
    return int(heap[:-1]) * (1024 if heap[-1] in "gG" else 1)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a deployment.

    Args:
        ready: When a landed partition is complete: `flag` (its flag is set) or, for producers that write no flag,
            `next_exists` (a later partition exists).
        longest_line: Maximum bytes of a landed line; a file with a longer one holds its partition.
        largest_file: Maximum decompressed bytes of a landed file; a larger one holds its partition.
        java: Which Java to use: `system` (the machine's), `bundled`, or `auto` (the machine's, else the bundled one).
        maven_mirror: Root address of the Maven repository to fetch jars from; None for Ivy's default.
        ca_file: Bundle of trusted certificates (PEM) for fetching jars; None if the machine has none.
        dagster_storage: PostgreSQL address of Dagster's runs and events; None: SQLite files in the home folder.
        dagster_secret: Name of the password at that address; None: it needs none, or the address has it.
        first_day: Day, `2026-01-05`, of the first partition, even if it has no data; None starts at the oldest data.
    """

    home: Path
    landing: Path
    lake: Path
    jars: Path
    ready: Readiness = "flag"
    longest_line: int = 16 << 20
    largest_file: int = 8 << 30
    java: JavaChoice = "auto"
    java_home: str | None = None
    search_path: str = ""
    maven_mirror: str | None = None
    ca_file: Path | None = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    postgres: PostgresSettings = field(default_factory=PostgresSettings)
    tables: TableSettings = field(default_factory=TableSettings)
    dagster_storage: str | None = None
    dagster_secret: str | None = None
    secrets: SecretSettings = field(default_factory=SecretSettings)
    steps_at_once: int = 1
    alerts: AlertSettings = field(default_factory=AlertSettings)
    partner: PartnerSettings = field(default_factory=PartnerSettings)
    copies: tuple[Export, ...] = ()
    logs: LogSettings = field(default_factory=LogSettings)
    site: SiteSettings = field(default_factory=SiteSettings)
    first_day: str | None = None
    run_automatically: bool = False

    @property
    def checkpoints(self) -> Path:
        """Folder of the streams' checkpoints."""
        return self.home / "checkpoints"

    def service_folder(self, name: str) -> Path:
        """Return the folder of a service's state and logs; it is created if absent.

        Returns:
            The folder.

        Raises:
            ConfigurationError: The home folder cannot be written.
        """
        folder = self.home / "services" / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.home, error) from error
        return folder


def load(environ: Mapping[str, str] | None = None, *, overrides: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of this process; its home folder is made if absent, and closed to other users.

    Args:
        environ: The environment to read; the process's own when None.

    Returns:
        Validated settings; all paths are absolute.

    Raises:
        ConfigurationError: A value cannot be used, or the home folder cannot be written.
    """
    env = {**(os.environ if environ is None else environ), **(overrides or {})}
    home = setting_values.home(env)
    _check_writable(home)
    file = home / "blogdata.toml"
    document = _read_file(file)
    channels = document.pop("alerts", None)
    values = _sections(document, file)
    for variable, (section, key) in _ENVIRONMENT.items():
        if env.get(variable):
            values.setdefault(section, {})[key] = (env[variable], variable)
    paths, java, spark, dagster = (values.get(section, {}) for section in ("paths", "java", "spark", "dagster"))
    storage = postgres_settings.storage(dagster)
    cache = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or "~").expanduser() / ".cache")
    landing = setting_values.folder(paths, "landing", home / "landing", home)
    files.close(home, landing)
    return Settings(
        home=home,
        landing=landing,
        lake=setting_values.store_folder(setting_values.folder(paths, "lake", home / "lake", home)),
        jars=setting_values.folder(paths, "jars", cache / "blogdata" / "jars", home),
        ready=cast(Readiness, setting_values.choice(values.get("landing", {}), "ready", "flag", get_args(Readiness))),
        longest_line=setting_values.size(values.get("landing", {}), "longest_line", "16m", most="1g"),
        largest_file=setting_values.size(values.get("landing", {}), "largest_file", "8g"),
        java=cast(JavaChoice, setting_values.choice(java, "use", "auto", get_args(JavaChoice))),
        java_home=env.get("JAVA_HOME") or None,
        search_path=env.get("PATH", ""),
        maven_mirror=_mirror(java),
        ca_file=trust.bundle(env),
        spark=_spark(spark),
        secrets=secret_settings.parse(values.get("secrets", {}), env, home=home),
        postgres=postgres_settings.parse(values.get("postgres", {})),
        tables=table_settings.parse(values.get("tables", {})),
        dagster_storage=storage,
        dagster_secret=postgres_settings.password(dagster, storage, example="dagster"),
        steps_at_once=setting_values.whole(dagster, "steps_at_once", 1, 1, 8),
        alerts=alert_settings.parse(channels, values.get("alerting", {}), file=file),
        partner=partner_settings.parse(values.get("partner", {})),
        copies=copy_settings.parse(values.get("copies", {}), home=home),
        logs=log_settings.parse(values.get("logs", {})),
        site=site_settings.parse(values.get("site", {}), values.get("logs", {}), home=home),
        first_day=setting_values.day(values.get("history", {})),
        run_automatically=setting_values.switch(values.get("automation", {})),
    )


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(
            what=f"The settings file cannot be read: {error}",
            where=str(path),
            next_step="Correct the file, or move it away to use the defaults",
        ) from error


def _sections(document: Mapping[str, Any], path: Path) -> dict[str, dict[str, tuple[Any, str]]]:
    values: dict[str, dict[str, tuple[Any, str]]] = {}
    for section, content in document.items():
        known = _FILE_KEYS.get(section)
        unknown = [section] if known is None or not isinstance(content, dict) else sorted(set(content) - known)
        if unknown:
            raise ConfigurationError(
                what=f"Unknown setting {', '.join(unknown)!r}",
                where=f"{path}, section [{section}]",
                next_step="Known: "
                + "; ".join([*(f"[{s}] {', '.join(sorted(k))}" for s, k in _FILE_KEYS.items()), "[[alerts]]"]),
            )
        values[section] = {key: (value, f"{path}, {section}.{key}") for key, value in content.items()}
    return values


def _spark(values: Mapping[str, tuple[Any, str]]) -> SparkSettings:
    remote, remote_source = values.get("remote", ("", ""))
    remote = str(remote)
    mode = setting_values.choice(
        values, "mode", "remote" if remote.startswith("sc://") else "local", get_args(SparkMode)
    )
    if mode == "remote":
        _check_address(remote, remote_source or "SPARK_REMOTE")
    elif remote and not remote.startswith("sc://") and not re.fullmatch(r"local(\[.*\])?", remote):
        _check_address(remote, remote_source)
    heap, heap_source = values.get("heap", ("2g", ""))
    if re.fullmatch(r"\d+[mMgG]", str(heap)) is None or _mebibytes(str(heap)) < 512:
        raise ConfigurationError(
            what=f"{heap!r} is not a heap Spark can start with",
            where=heap_source,
            next_step="Give at least 512m, as a whole number and a unit: 1536m, 2g",
        )
    conf, conf_source = values.get("conf", ({}, ""))
    if not isinstance(conf, dict) or any(isinstance(value, (dict, list)) for value in conf.values()):
        raise ConfigurationError(
            what="Spark configuration must be plain keys and values",
            where=conf_source,
            next_step='Write [spark.conf] with quoted keys: "spark.sql.shuffle.partitions" = 8',
        )
    return SparkSettings(
        mode=cast(SparkMode, mode),
        remote=remote if mode == "remote" else None,
        master=str(values.get("master", ("local[*]", ""))[0]),
        heap=str(heap).lower(),
        port=setting_values.port(values, "port"),
        start_seconds=setting_values.number(values, "start_seconds", 120.0, 1.0, 3600.0),
        writes=cast(Writes, setting_values.choice(values, "writes", "transaction", get_args(Writes))),
        conf=tuple(sorted((key, _conf_text(value)) for key, value in conf.items())),
    )


def _conf_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_address(address: str, source: str) -> None:
    parts = urlsplit(address)
    try:
        valid = parts.scheme == "sc" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or parts.path.split(";")[0] not in ("", "/") or parts.query:
        raise ConfigurationError(
            what=f"{address!r} is not the address of a Spark Connect server",
            where=source,
            next_step="Write sc://host:port or sc://host:port/;use_ssl=true, or unset it for a local server",
        )


def _mirror(values: Mapping[str, tuple[Any, str]]) -> str | None:
    value, source = values.get("maven_mirror", (None, ""))
    if value is not None and urlsplit(str(value)).scheme not in ("http", "https", "file"):
        raise ConfigurationError(
            what=f"{value!r} is not the address of a repository",
            where=source,
            next_step="Write the root address of a Maven repository, beginning with https://, http:// or file:///",
        )
    return None if value is None else str(value)


def _check_writable(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(home, error) from error
    if not os.access(home, os.W_OK | os.X_OK):
        raise _unwritable(home, "permission denied")


def _unwritable(home: Path, reason: object) -> ConfigurationError:
    return ConfigurationError(
        what=f"The home folder cannot be written: {reason}",
        where=f"BLOGDATA_HOME={home}",
        next_step="Set BLOGDATA_HOME to a folder you may write, or correct its permissions",
    )
