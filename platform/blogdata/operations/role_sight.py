"""What a query sees that is asked as a role: datasets by their own names, in the shape that the role sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, ShowRights
from blogdata.lake.lake import Lake
from blogdata.patterns.security import fine_grained_accessor_for_tables
from blogdata.patterns.security.fine_grained_accessor_for_tables import MASK, RIGHTS, Role, sight_of
from blogdata.patterns.security.pseudo_anonymizer import derived_key
from blogdata.publish.migrations import carried
from blogdata.services import secrets
from blogdata.services.config import Settings
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECRET = "masks"
"""Name of the secret from which the key of masks is derived."""
_PLATFORM = "ops."
_NO_SECRET = "BLOGDATA_NO_SECRET"


@dataclass(frozen=True, kw_only=True)
class RoleSight:
    role: Role
    settings: Settings

    def require(self, names: Iterable[str]) -> None:
        for name in names:
            if self._of_platform(name):
                continue
            if name not in EVERY:
                raise ConfigurationError(
                    what=f"the role {self.role.value} does not see {name}",
                    where=name,
                    next_step=Remedy("read a dataset by its own name; see what the roles see: ", ShowRights()),
                )
            fine_grained_accessor_for_tables.require_sight(EVERY[name], self.role)

    def require_newest(self, names: Iterable[str]) -> None:
        """Refuse an earlier state of tables whose rows the role does not see alike: it shows what was hidden since."""
        sights = [sight_of(EVERY[name], self.role) for name in names if name in EVERY]
        changing = [sight.dataset for sight in sights if sight is not None and (sight.rows or sight.private)]
        if changing:
            raise ConfigurationError(
                what=f"the role {self.role.value} sees the newest state only: who may be shared may change",
                where=f"--as-of of {changing[0]}",
                next_step="leave --as-of out",
            )

    def of(self, spark: SparkSession, lake: Lake, name: str, rows: DataFrame) -> DataFrame:
        if self._of_platform(name):
            return rows
        offer_masks(spark, self.settings)
        return fine_grained_accessor_for_tables.restricted(rows, carried(EVERY[name], lake.table(name)), self.role)

    def _of_platform(self, name: str) -> bool:
        # What the platform says of itself has no value of a person.
        return name.startswith(_PLATFORM) and RIGHTS[self.role].technical


def mark_of(settings: Settings) -> str:
    """Return what tells the key of the masks from another one, without its value."""
    return derived_key(secrets.read(settings, SECRET).reveal(), "mark").hex()


def offer_masks(spark: SparkSession, settings: Settings, purpose: str = SECRET) -> None:
    """Give a session the function that masks values; the server reads the key, by the name of the secret."""
    from pyspark.errors import PySparkException

    offered = spark.read.format("keyed-masks").option("function", MASK).option("purpose", purpose)
    with secrets.in_file(settings, SECRET) as file:
        try:
            # The engine registers the function while Spark looks for the schema.
            offered.option("secret", str(file)).load().schema  # noqa: B018
        except PySparkException as error:
            if _NO_SECRET not in str(error):
                raise
            raise ConfigurationError(
                what="the Spark server cannot read the key of the masks",
                where=str(file),
                next_step="query as a role on a machine whose Spark server reads the home",
            ) from error
