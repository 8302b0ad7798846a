"""What may stand in an entry of techniques.yaml that uses ``collection_routed``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import Number, Whole
from ragistry.types import TOP_K_LIMIT


class RoutingConfig(BaseModel):
    """``margin`` and ``threshold``: `ragistry route --fit` finds values for the collections of a workspace."""

    model_config = ConfigDict(extra="forbid")

    top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="how many documents")
    router: Literal["evidence", "embedding", "llm", "explicit", "all"] = Field(
        default="evidence", description="who chooses"
    )
    margin: Number = Field(default=0.1, ge=0, le=1, description="targets that score less than this below the best join")
    threshold: Number = Field(default=0.0, ge=0, le=1, description="search nothing where the fit is lower; 0: never")
    most: Whole = Field(default=3, ge=1, le=100, description="targets that join at most")
    evidence: list[Literal["words", "vectors"]] = Field(
        default=["words", "vectors"], min_length=1, description="evidence: what is compared to find out"
    )
    sample: Whole = Field(default=512, ge=3, le=10_000, description="chunks of each target that a query is compared to")
    on_error: Literal["raise", "all", "abstain"] = Field(
        default="raise", description="llm: what happens when its answer names no target"
    )
