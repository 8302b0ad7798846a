"""The configuration of an entry with ``use: collection_routed``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import Number, Whole
from ragistry.types import TOP_K_LIMIT


class RoutingConfig(BaseModel):
    """``margin`` and ``threshold``: `ragistry route --fit` finds values for the collections of a workspace."""

    model_config = ConfigDict(extra="forbid")

    top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="default number of results")
    router: Literal["evidence", "embedding", "llm", "explicit", "all"] = Field(
        default="evidence", description="who chooses"
    )
    margin: Number = Field(
        default=0.1, ge=0, le=1, description="also search targets that score less than this below the best"
    )
    threshold: Number = Field(
        default=0.0, ge=0, le=1, description="search nothing if the fit is lower; 0: always search"
    )
    most: Whole = Field(default=3, ge=1, le=100, description="maximum number of targets to search")
    evidence: list[Literal["words", "vectors"]] = Field(
        default=["words", "vectors"], min_length=1, description="router evidence: what to compare"
    )
    sample: Whole = Field(
        default=512, ge=3, le=10_000, description="number of chunks of each target to compare the query with"
    )
    on_error: Literal["raise", "all", "abstain"] = Field(
        default="raise", description="router llm: what to do if the answer names no target"
    )
