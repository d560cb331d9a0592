"""What an administrator can decide about SpreadHeadroom."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import parse_amount
from rebalancer.policy.model import Section


class FailureDomain(StrEnum):
    NODE = "Node"
    ZONE = "Zone"
    NONE = "None"


class Basis(StrEnum):
    REQUESTS = "Requests"
    MEASURED_LOAD = "MeasuredLoad"
    NONE = "None"


class SizeSettings(Section):
    """VMs of one size, so many of which should be able to start at any time."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$", description="What it is called in reports."
    )
    memory: str = Field(description="Memory of the guest, such as 64Gi.")
    vcpus: int = Field(default=1, ge=1, description="CPUs of the guest.")
    node_selector: dict[str, str] = Field(
        default={}, description="Labels of the nodes that such VMs may go to."
    )
    count: int = Field(default=1, ge=0, description="How many should fit; 0: only counted.")

    @field_validator("memory")
    @classmethod
    def _memory_is_an_amount(cls, memory: str) -> str:
        try:
            is_something = parse_amount(memory, "memory") > 0
        except QuantityError as error:
            raise ValueError(str(error)) from error
        if not is_something:
            raise ValueError(f"{memory} must be more than nothing")
        return memory

    @property
    def memory_bytes(self) -> int:
        return parse_amount(self.memory, "memory")


class HeadroomSettings(Section):
    """Room that is kept free."""

    failure_domain: FailureDomain = Field(
        default=FailureDomain.NODE,
        description="Whose loss the VMs survive: those of any one node, or zone, can start again on"
        " the rest.",
    )
    min_priority: int | None = Field(
        default=None, description="VMs of a lower priority need not survive; unset, all do."
    )
    sizes: tuple[SizeSettings, ...] = Field(
        default=(), description="Sizes of VMs that should be able to start now."
    )

    @field_validator("sizes")
    @classmethod
    def _names_differ(cls, sizes: Sequence[SizeSettings]) -> Sequence[SizeSettings]:
        names = [size.name for size in sizes]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two sizes are called {twice[0]}")
        return sizes


class BalanceSettings(Section):
    """Evening out load."""

    by: Basis = Field(
        default=Basis.REQUESTS,
        description="Requests: what pods request. MeasuredLoad: what measuredLoad in the policy"
        " measures. None: nothing is evened out.",
    )
    resources: tuple[Literal["cpu", "memory"], ...] = Field(
        default=("cpu", "memory"),
        min_length=1,
        description="What of requests counts; measured load has a resource of its own.",
    )
    measure: Literal["SquaredDeviation", "Peak"] = Field(
        default="SquaredDeviation",
        description="What is lowered: the sum over nodes of the squared distance from the mean"
        " utilisation, or the highest utilisation.",
    )
    only_above: float = Field(
        default=0.8,
        ge=0,
        le=1,
        description="Nothing moves while no node's utilisation is above this share. By measured"
        " load, all of a node's latest readings must be.",
    )
    only_above_pressure: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Where measuredLoad.pressureQuery is set, VMs also move while all of a node's"
        " latest readings of pressure are above this share.",
    )
    max_moves: int = Field(default=5, ge=1, description="Migrations in one cycle for this.")
    min_gain_per_cost_second: float = Field(
        default=1e-5,
        gt=0,
        description="What a migration must lower the measure by for each second of its cost.",
    )
    no_return_seconds: int = Field(
        default=3600, ge=0, description="A VM is not sent back to a node that it left within this."
    )


class SpreadHeadroomSettings(Section):
    headroom: HeadroomSettings = HeadroomSettings()
    balance: BalanceSettings = BalanceSettings()
