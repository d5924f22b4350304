"""Where settings are read from: keys of `blogdata.toml` and variables of the environment, and the errors about them."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import AliasChoices, AliasPath, Field
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from blogdata.errors import ConfigurationError, refuse_unknown

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
    """List where the fields of a class are read from: `("spark", "port")`, `("spark", "BLOGDATA_SPARK_PORT")`."""
    for name, hint in get_type_hints(section, include_extras=True).items():
        aliases = (part.validation_alias for part in get_args(hint)[1:] if isinstance(part, FieldInfo))
        found = next((alias for alias in aliases if isinstance(alias, AliasChoices)), AliasChoices(AliasPath(name)))
        for choice in found.choices:
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


def trusted_certificates(environ: Mapping[str, str]) -> Path | None:
    """Return the file of the certificates that the machine trusts (PEM); None without one."""
    usual = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
    names = (environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().openssl_cafile, *usual)
    return next((Path(name) for name in names if name and Path(name).is_file()), None)


def read(file: Path, known: Collection[Place]) -> dict[str, Any]:
    """Read the file, which may not exist; it is refused if it has other settings than the known ones."""
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


def refused(error: ErrorDetails, file: Path) -> ConfigurationError:
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
