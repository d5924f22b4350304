"""The job `settle`: a person settles a request that the partner has not answered, and that may not be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata.operations.job import operation
from blogdata.orchestration import partner


class SettleConfig(dg.Config):
    """What a person has found at the partner."""

    request: str = Field(description="Id of the request, or its beginning")
    taken: bool = Field(description="Whether the partner has its records; if not, they wait again, for another request")


def _do(context: dg.OpExecutionContext, config: SettleConfig) -> Mapping[str, Any]:
    box = partner.outbox(context.resources.deployment.settings())
    with box.alone():
        count = box.resolve(config.request, taken=config.taken)
    return {"delivered" if config.taken else "waiting": count}


job = operation(
    "settle",
    SettleConfig,
    _do,
    description="Settle a request that the partner has not answered, and that may not be repeated any more",
)
