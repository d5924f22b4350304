"""Settings of one deployment: read once from the environment and `blogdata.toml`, then passed as a value.

The environment overrides the file, the file overrides the defaults. Each field says where it is read from.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import AfterValidator, AliasChoices, AliasPath, Field, TypeAdapter, ValidationError, ValidationInfo
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.errors.finding import Severity
from blogdata.operate import setting_types as types

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Place = tuple[str, ...]


def at(place: str = "", variable: str = "") -> Any:
    """Say where a field is read from, if not only from the key of its name: the variable comes first."""
    variables = [variable] if variable else []
    keys = [AliasPath(*place.split("."))] if place else []
    return Field(validation_alias=AliasChoices(*variables, *keys))


def places(section: type) -> Iterator[Place]:
    """List where the fields of a class are read from: `("spark", "heap")`, `("spark", "BLOGDATA_SPARK_HEAP")`."""
    for name, hint in get_type_hints(section, include_extras=True).items():
        aliases = (part.validation_alias for part in get_args(hint)[1:] if isinstance(part, FieldInfo))
        alias = next((alias for alias in aliases if isinstance(alias, AliasChoices)), AliasChoices(AliasPath(name)))
        for choice in alias.choices:
            if isinstance(choice, str):
                yield (choice,)
            elif (inner := _section(hint)) is None:
                yield tuple(map(str, choice.path))
            else:
                yield from ((name, *below) for below in places(inner))


def _section(hint: Any) -> type | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next(filter(None, map(_section, get_args(hint))), None)


Readiness = Literal["flag", "next_exists"]
PostgresLogin = Literal["password", "certificate"]
_MISREAD = re.compile(r"[*?\[\]{}\\|^%`\x00-\x1f\x7f]")
"""What Spark takes for a pattern, SQL for the end of a name, or the Delta library for an address."""
_FOLDERS = ("BLOGDATA_LANDING", "BLOGDATA_LAKE", "BLOGDATA_JARS")


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """How a Spark session is opened: on this deployment's own server, or on a remote one."""

    remote: Annotated[types.SparkRemote, at("remote", "SPARK_REMOTE")] = None
    master: Annotated[str, at("master", "BLOGDATA_SPARK_MASTER")] = "local[*]"
    heap: Annotated[types.Heap, at("heap", "BLOGDATA_SPARK_HEAP")] = "2g"
    conf: types.SparkConf = ()

    @property
    def heap_bytes(self) -> int:
        return types.amount(self.heap, types.BYTES)


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """Where PostgreSQL is: at a URL, with the name of its password, or this deployment's own server."""

    url: Annotated[types.Database | None, at("url", "BLOGDATA_POSTGRES")] = None
    secret: types.Name | None = None
    login: PostgresLogin = "password"


def _loaded_by_time(name: str | None, info: ValidationInfo) -> str | None:
    if name is not None and not info.data.get("since"):
        raise types.refusal("has no first day to load", 'write beside the table: since = "2026-01-05"')
    return name


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Which tables of a PostgreSQL database are loaded; None: they are delivered as files."""

    url: types.Database | None = None
    secret: types.Name | None = None
    since: types.Day = ""
    devices: types.TableName | None = None
    users: Annotated[types.TableName | None, AfterValidator(_loaded_by_time)] = None
    legacy_visits: Annotated[types.TableName | None, AfterValidator(_loaded_by_time)] = None
    overlap: types.Duration = 21600.0

    @property
    def any(self) -> bool:
        return bool(self.devices or self.users or self.legacy_visits)


@dataclass(frozen=True, kw_only=True)
class PartnerSettings:
    """The partner's API, if there is one, and how events are sent to it; times are in seconds."""

    url: Annotated[types.HttpAddress | None, at("url", "BLOGDATA_PARTNER")] = None
    secret: types.Name | None = None
    mode: Literal["bins", "individual"] = "bins"
    wait: types.Duration = 3600.0
    timeout: Annotated[float, Field(ge=0.1, le=600)] = 30.0


@dataclass(frozen=True, kw_only=True)
class CopySettings:
    """Where copies of the tables go, and the group of the machine's users that reads them."""

    folder: Annotated[types.Folder, AfterValidator(Path.resolve)]
    group: types.Text


@dataclass(frozen=True, kw_only=True)
class ExcludedRequests:
    """Which requests of access logs count for nobody; `agents` are texts in lower case within their user agents."""

    addresses: tuple[types.Network, ...] = ()
    agents: tuple[Annotated[types.Text, AfterValidator(str.lower)], ...] = ()
    paths: tuple[types.PathStart, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CrawlerSettings:
    """Who is a crawler, besides those with a crawler's agent: by address, and by what it does in an hour."""

    addresses: tuple[types.Network, ...] = ()
    robots_txt: bool = True
    most_views: Annotated[int, Field(ge=1)] = 1000


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    formats: Annotated[types.TextOrTexts, at("format")] = ()
    zone: types.Zone = "UTC"
    proxies: tuple[types.Proxy, ...] = ()
    exclude: ExcludedRequests = field(default_factory=ExcludedRequests)
    crawlers: CrawlerSettings = field(default_factory=CrawlerSettings)

    @property
    def filters_version(self) -> str:
        """What identifies the settings that decide which requests count."""
        filters = (self.exclude, self.crawlers)
        if filters == (ExcludedRequests(), CrawlerSettings()):
            return "default"
        return hashlib.sha256(repr(filters).encode()).hexdigest()[:8]


@dataclass(frozen=True, kw_only=True)
class ChannelSettings:
    """A channel of the alerts; `{secret}` in its address stands for the secret, and no owners are all owners."""

    name: types.Name
    secret: types.Name | None = None
    address: types.ChannelAddress
    least_severity: Severity = Severity.WARNING
    owners: tuple[types.Text, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AlertingSettings:
    """After how many seconds it is told again what still stands, and the name of the deployment in messages."""

    repeat_after: types.Pause = 86_400.0
    name: str = ""


def _unique(channels: tuple[ChannelSettings, ...]) -> tuple[ChannelSettings, ...]:
    names = [channel.name for channel in channels]
    if again := [name for name in names if names.count(name) > 1]:
        raise types.refusal(f"are two channels with the name {again[0]}", "name one of them otherwise")
    return channels


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a deployment, each as docs/reference/configuration.md says; all paths are absolute."""

    home: Annotated[Path, at(variable="BLOGDATA_HOME")]
    landing: Annotated[types.Folder, at("paths.landing", "BLOGDATA_LANDING")]
    lake: Annotated[types.Folder, AfterValidator(_store_folder), at("paths.lake", "BLOGDATA_LAKE")]
    jars: Annotated[types.Folder, at("paths.jars", "BLOGDATA_JARS")]
    ready: Annotated[Readiness, at("landing.ready", "BLOGDATA_LANDING_READY")] = "flag"
    longest_line: Annotated[types.LineSize, at("landing.longest_line", "BLOGDATA_LONGEST_LINE")] = 16 << 20
    largest_file: Annotated[types.FileSize, at("landing.largest_file", "BLOGDATA_LARGEST_FILE")] = 8 << 30
    maven_mirror: Annotated[types.MavenAddress | None, at("java.maven_mirror", "BLOGDATA_MAVEN_MIRROR")] = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    postgres: PostgresSettings = field(default_factory=PostgresSettings)
    tables: TableSettings = field(default_factory=TableSettings)
    dagster_storage: Annotated[types.DagsterStorage | None, at(variable="BLOGDATA_DAGSTER_STORAGE")] = None
    alerts: Annotated[tuple[ChannelSettings, ...], AfterValidator(_unique)] = ()
    alerting: AlertingSettings = field(default_factory=AlertingSettings)
    partner: PartnerSettings = field(default_factory=PartnerSettings)
    staging: CopySettings | None = None
    logs: LogSettings = field(default_factory=LogSettings)
    site_hosts: Annotated[tuple[types.HostName, ...], at("site.hosts")] = ()
    first_day: Annotated[types.Day | None, at("history.begins", "BLOGDATA_HISTORY")] = None
    run_automatically: Annotated[bool, at("automation.on", "BLOGDATA_AUTOMATIC")] = False

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    def service_folder(self, name: str) -> Path:
        """Return the folder of a service's state and logs; it is created if absent."""
        return _made(self.home / "services" / name, self.home)


def _store_folder(folder: Path) -> Path:
    misread = _MISREAD.search(str(folder))
    if misread is not None:
        raise ConfigurationError(
            what=f"the path of the deployment contains {misread[0]!r}, which means something else to Spark or Delta",
            where=ascii(str(folder))[1:-1],
            next_step="choose a folder whose path has none of * ? [ ] { } \\ | ^ % ` and no control characters",
        )
    return folder


def home(environ: Mapping[str, str]) -> Path:
    """Return the home folder of the deployment that an environment names; it may not exist."""
    return _store_folder(Path(environ.get("BLOGDATA_HOME") or "var").expanduser().absolute())


def load(environ: Mapping[str, str] | None = None, *, overrides: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of this process; its home folder is made if absent, and closed to other users."""
    env = {**(os.environ if environ is None else environ), **(overrides or {})}
    folder = home(env)
    file = _made(folder, folder) / "blogdata.toml"
    state = folder.stat()
    # What another user owns, as the volume of a container, or is for everybody, is not the deployment's to close.
    if state.st_uid == os.geteuid() and not state.st_mode & stat.S_ISVTX:
        folder.chmod(0o700)
    document = _document(file, _places())
    try:
        settings = _adapter().validate_python(_merged(document, env, folder), context=folder)
    except ValidationError as error:
        # Not as its cause: its text has the values, which may be private.
        raise _refused(error.errors(include_url=False)[0], file) from None
    return settings


_places = cache(lambda: frozenset(places(Settings)))
_adapter = cache(lambda: TypeAdapter(Settings))


def _merged(document: Mapping[str, Any], env: Mapping[str, str], home: Path) -> dict[str, Any]:
    """Return the file's values with the variables beside those of each section, as fields look for them."""
    variables: dict[str, Any] = {name: value for name, value in env.items() if name.isupper() and value}
    for name in _FOLDERS:
        # A relative folder is relative to the current one here, and to the home in the file.
        if name in variables and "://" not in variables[name]:
            variables[name] = str(Path(variables[name]).expanduser().absolute())
    variables["BLOGDATA_HOME"] = home
    cache_folder = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".cache")
    paths = {"landing": "landing", "lake": "lake", "jars": f"{cache_folder}/blogdata/jars"}
    sections = {place[0] for place in _places() if len(place) > 1 and place[-1].isupper()}
    merged = {name: {**document.get(name, {}), **variables} for name in sections}
    return {**document, **variables, **merged, "paths": {**paths, **document.get("paths", {})}}


def _made(folder: Path, home: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        reason = "permission denied"
    except OSError as error:
        reason = str(error)
    raise ConfigurationError(
        what=f"The home folder cannot be written: {reason}",
        where=f"BLOGDATA_HOME={home}",
        next_step="Set BLOGDATA_HOME to a folder you may write, or correct its permissions",
    )


def _document(file: Path, known: Collection[Place]) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(
            what=f"The settings file cannot be read: {error}",
            where=str(file),
            next_step="Correct the file, or move it away to use the defaults",
        ) from error
    _refuse_unknown(document, known, (), file)
    return document


def _refuse_unknown(
    values: Mapping[str, Any], known: Collection[Place], above: Sequence[str | int], file: Path
) -> None:
    names = sorted({place[0] for place in known if place[0][0].islower()})
    for name, value in values.items():
        where = _where((*above, name), file)
        refuse_unknown([name], names, where=where, kind="setting")
        below = {place[1:] for place in known if place[0] == name and len(place) > 1}
        tables = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for number, table in tables if below else ():
            if not isinstance(table, dict) or (name == "alerts") != (number is not None):
                raise ConfigurationError(
                    what=f"{name} is a section",
                    where=where,
                    next_step=f"write its settings below a line {'[[alerts]]' if name == 'alerts' else f'[{name}]'}",
                )
            _refuse_unknown(table, below, (*above, name) if number is None else (name, number), file)


def _refused(error: ErrorDetails, file: Path) -> ConfigurationError:
    place, value, texts = error["loc"], error["input"], error.get("ctx", {})
    key = next(part for part in reversed(place) if isinstance(part, str))
    is_shown = isinstance(value, (str, int, float)) and not texts.get("private")
    what, write = texts.get("what", "cannot be used"), texts.get("write", f"correct it: {error['msg']}")
    if error["type"] == "tuple_type":
        write = "write a text, or a list of texts"
    if error["type"] == "missing":
        what, write, is_shown = "is missing", f"write {key} = …", False
    return ConfigurationError(
        what=f"{repr(value) if is_shown else key} {what}", where=_where(place, file), next_step=write
    )


def _where(place: Sequence[str | int], file: Path) -> str:
    if (name := str(place[-1])).isupper():
        return name
    if place[0] == "alerts" and len(place) > 1:
        return ", ".join([str(file), f"[[alerts]] number {int(place[1]) + 1}", *map(str, place[2:3])])
    return f"{file}, {'.'.join(part for part in place if isinstance(part, str))}"
