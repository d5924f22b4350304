import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from blogdata.operate import config, secrets
from blogdata.operate.config import Settings
from blogdata.patterns.security import encryptor
from blogdata.patterns.security.secrets_pointer import Pointer, Secret
from blogdata.runs import deployment_keys
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from quality.contracts.users import IDENTITIES

__all__ = ["deploy"]
KEY = "identities-key"
LOGINS = ("annabelle-1", "bartholomew", "annabelle-1")
ROWS = [("a" * 32, LOGINS[0], "ann@mail.example"), ("b" * 32, LOGINS[1], None), ("c" * 32, LOGINS[2], "")]
DDL = "identity STRING, login STRING, email STRING"
STORED = (
    ("annabelle-1", "login", "a", "1.j-45rbfxYi3WUPVRMeqY0LWVYWG9hLx3LeBKf1beoWcnCzJ7pJpO"),
    ("Zoë 🐘@mail.example", "email", "b", "2.jx8oQA9Y4ZBNJvtZDgH2FbGwsWKCrs48MBw9LGMDUBNAeKJ6cEhUv46lzUBNju-LwGc"),
    ("", "email", "c", "1.jVOekJ64l9SOB6FFyEi59F_Fs24vBIpVdNe1NA"),
)
"""What a table has, with a key of 64 times `s` and then `1`: text, column, identity, ciphertext."""


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    return config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")})


def key(own: Settings) -> Pointer:
    return secrets.own(own, KEY)


def stored(spark: Any, own: Settings) -> Any:
    rows = encryptor.encrypted(
        spark.createDataFrame(ROWS, DDL), IDENTITIES, key(own), deployment_keys.current(own, KEY).version
    )
    return spark.createDataFrame(rows.toArrow())


def opened(rows: Any, own: Settings) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in encryptor.decrypted(rows, IDENTITIES, key(own)).collect()]


def rotate(own: Settings) -> int:
    pointer = secrets.pointer(own, KEY)
    last = pointer.versions()[-1]
    assert pointer.add(Secret(f"{last}" * 64), after=last)
    return last + 1


def test_what_is_stored_is_read_and_written_as_it_was(own: Settings) -> None:
    assert secrets.pointer(own, KEY).add(Secret("s" * 64), after=0)
    assert secrets.pointer(own, KEY).add(Secret("1" * 64), after=1)
    for text, column, identity, ciphertext in STORED:
        place = pa.array([f"silver.identities.{column}\n{identity * 32}"] * 2)
        assert encryptor._decrypted(pa.array([ciphertext, None]), place, key(own)).to_pylist() == [text, None]
        again = encryptor._encrypted(pa.array([text, None]), place, key(own), int(ciphertext[0]))
        assert again.to_pylist() == [ciphertext, None]


def test_no_plan_has_the_key(spark: Any, own: Settings) -> None:
    rows: Any = encryptor.decrypted(stored(spark, own), IDENTITIES, key(own))
    sent = f"{rows._explain_string('extended')} {rows._plan.to_proto(spark.client)}"
    assert KEY in sent, "its name, and where it is"
    secret = secrets.read(own, KEY).reveal()
    derived = [encryptor._hash(secret.encode(), purpose) for purpose in (b"encryption", b"nonce")]
    assert not any(form in sent for raw in derived for form in (secret, raw.hex(), str(raw)[2:-1]))


def test_a_value_that_is_not_what_was_encrypted_is_an_error(own: Settings) -> None:
    place, text = f"silver.identities.login\n{'a' * 32}", LOGINS[0]
    (sealed,) = encryptor._encrypted(pa.array([text]), pa.array([place]), key(own), 1).to_pylist()
    for stored, at, why in (
        (sealed.swapcase(), place, "changed, cut or moved"),
        (sealed[:12], place, "changed, cut or moved"),
        (sealed, place.replace("a" * 32, "d" * 32), "changed, cut or moved"),
        (sealed, place.replace("login", "email"), "changed, cut or moved"),
        (text, place, "it is no encrypted text"),
    ):
        with pytest.raises(ValueError, match=why) as error:
            encryptor._decrypted(pa.array([stored]), pa.array([at]), key(own))
        assert (text in str(error.value), error.value.__suppress_context__) == (False, True)


def test_a_key_is_rotated_and_shredded(spark: Any, own: Settings) -> None:
    old = stored(spark, own)
    assert rotate(own) == 2
    new = stored(spark, own)
    assert opened(new, own) == opened(old, own) == ROWS, "each version decrypts what it has encrypted"
    assert {row.login[:2] for row in new.collect()} == {"2."}

    (own.home / "secrets" / KEY).unlink()
    assert deployment_keys.current(own, KEY).version == 2
    assert opened(new, own) == ROWS
    with pytest.raises(PySparkException) as error:
        opened(old, own)
    assert not any(login in str(error.value) for login in LOGINS)
    assert f"version 1 of the key {KEY}" in str(encryptor.explained(str(error.value), own.home / "secrets"))


def deliver(made: Deployment, day: str, *logins: str) -> None:
    lines = [{"id": f"u-{name}", "login": name, "email": f"{name}@mail.example"} for name in logins]
    made.deliver("users", day, [json.dumps(line).encode() for line in lines])


def versions_of_key(made: Deployment) -> set[str]:
    return {login.partition(".")[0] for login in made.rows(IDENTITIES.dataset, "login")}


def test_no_file_of_the_table_has_a_login_and_it_goes_on_by_another_key(deploy: Deploy) -> None:
    made, query = deploy("encrypted"), "SELECT login, email FROM silver.identities ORDER BY login"
    deliver(made, "2026-01-05", *LOGINS[:2])
    deliver(made, "2026-01-06", LOGINS[0], "christabel")
    assert made.run(select=["bronze.users", IDENTITIES.dataset]).problems == []
    everybody = [(name, f"{name}@mail.example") for name in (*LOGINS[:2], "christabel")]
    assert (made.asked(query), versions_of_key(made)) == (everybody, {"1"})
    files = [file.read_bytes() for file in Path(made.lake.path(IDENTITIES.dataset)).rglob("*") if file.is_file()]
    assert not any(name.encode() in content for name in (*LOGINS, "christabel", "mail.example") for content in files)

    assert rotate(made.settings) == 2
    assert made.run(select=[IDENTITIES.dataset]).problems == [], "requested again, it is derived from all deliveries"
    (made.settings.home / "secrets" / KEY).unlink()
    assert (made.asked(query), versions_of_key(made)) == (everybody, {"2"})
