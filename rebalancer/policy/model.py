"""The sections of a RebalancerPolicy; `config/policy.yaml` shows each with its default."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel


def title(field_name: str, _: object) -> str:
    """A field's title in the schema, which pydantic would make of its camelCase alias."""
    return field_name.replace("_", " ").capitalize()


class Section(BaseModel):
    """A part of the policy: camelCase in YAML, nothing unknown accepted, frozen once read."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        field_title_generator=title,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
    )


class Mode(StrEnum):
    OFF = "Off"
    """The strategy is not asked."""
    RECOMMEND = "Recommend"
    """Its proposals are shown, never carried out."""
    AUTOMATIC = "Automatic"
    """Its proposals are carried out."""


class HoldKind(StrEnum):
    LOCK_POD = "LockPod"
    """A pod of ours keeps all pods but the beneficiary's off the node until it is bound."""
    NONE = "None"
    """Freed room is not kept; only for clusters where nothing else arrives."""


class SchedulePolicy(Section):
    """When `serve` runs a cycle."""

    interval_seconds: int = Field(default=60, ge=1, description="Seconds from cycle to cycle.")
    cron: str | None = Field(
        default=None,
        description="Five cron fields, weekdays by name (mon-fri); taken instead of the interval"
        " when set.",
    )
    time_zone: str = Field(default="UTC", description="IANA zone that the cron fields are in.")
    jitter_seconds: int = Field(
        default=5, ge=0, description="Each cycle starts up to this much later, at random."
    )

    @field_validator("cron")
    @classmethod
    def _cron_is_understood(cls, cron: str | None) -> str | None:
        if cron is not None:
            # Put off: only this field needs a scheduler.
            from apscheduler.triggers.cron import CronTrigger

            try:
                trigger = CronTrigger.from_crontab(cron, timezone="UTC")
            except ValueError as error:
                raise ValueError(f"{cron!r} is no cron expression: {error}") from error
            # APScheduler 3 counts weekdays from Monday, cron from Sunday (agronholm/apscheduler
            # issue 286): with a number one of the two readers would be wrong.
            if re.search(r"(?<!/)\d", cron.split()[4]):
                raise ValueError(f"{cron!r} must have its weekdays by name, such as mon-fri")
            if trigger.get_next_fire_time(None, datetime(2000, 1, 1, tzinfo=UTC)) is None:
                raise ValueError(f"{cron!r} names a time that never comes")
        return cron

    @field_validator("time_zone")
    @classmethod
    def _time_zone_exists(cls, time_zone: str) -> str:
        try:
            ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"{time_zone!r} is no IANA time zone, such as UTC or Europe/Berlin"
            ) from error
        return time_zone

    @model_validator(mode="after")
    def _jitter_stays_below_interval(self) -> "SchedulePolicy":
        if self.cron is None and self.jitter_seconds >= self.interval_seconds:
            raise ValueError(
                f"jitterSeconds ({self.jitter_seconds}) must be smaller than"
                f" intervalSeconds ({self.interval_seconds})"
            )
        return self


class PlanningPolicy(Section):
    """How long to think and how large a plan may be."""

    deadline_seconds: float = Field(
        default=20,
        gt=0,
        description="Longest time of the solver for the plans of all goals together; what is not"
        " proven then is said.",
    )
    solver_memory_mebibytes: int = Field(
        default=512,
        ge=64,
        description="The solver, a process of its own, is stopped when it needs more; the plan is"
        " then the best that was found without it.",
    )
    max_moves_per_goal: int = Field(
        default=10, ge=1, description="A plan with more migrations for one goal is not made."
    )


class CostPolicy(Section):
    """What a migration costs, in seconds of migration or their equivalent."""

    bandwidth_bytes_per_second: int = Field(
        default=128 * 2**20,
        gt=0,
        description="Assumed speed of a migration; a lower limit in the KubeVirt CR wins.",
    )
    fixed_seconds: float = Field(
        default=10, gt=0, description="Charge for each migration, whatever its size."
    )
    prefer_no_eviction_seconds: float | None = Field(
        default=None,
        ge=0,
        description="Charge for a VM that bears descheduler.alpha.kubernetes.io/prefer-no-eviction;"
        " unset, such a VM is never moved.",
    )
    prefer_no_schedule_seconds: float = Field(
        default=60, ge=0, description="Charge for a target with a PreferNoSchedule taint."
    )
    other_zone_seconds: float = Field(
        default=30, ge=0, description="Charge for a target outside the zone that the VM is in."
    )
    priority_seconds_per_thousand: float = Field(
        default=1, ge=0, description="Charge for each 1000 of a VM's priority above 0."
    )
    recent_failure_seconds: float = Field(
        default=60,
        ge=0,
        description="Charge for each migration of the VM that failed within the last day.",
    )
    recent_move_seconds: float = Field(
        default=60,
        ge=0,
        description="Charge for a VM that has been migrated within the last day.",
    )


class BudgetPolicy(Section):
    """Limits on migrations; those in the KubeVirt CR hold besides, whichever is lower."""

    max_in_flight_per_cluster: int | None = Field(
        default=None, ge=1, description="Unset: what the KubeVirt CR allows."
    )
    max_outbound_per_node: int | None = Field(
        default=None, ge=1, description="Unset: what the KubeVirt CR allows."
    )
    max_inbound_per_node: int = Field(
        default=2, ge=1, description="KubeVirt itself has no such limit."
    )
    max_per_cycle: int = Field(default=20, ge=1, description="Migrations started in one cycle.")
    check_quotas: bool = Field(
        default=True,
        description="A VM is only moved while the ResourceQuotas of its namespace have room for its"
        " second pod. False is for clusters that lift quotas while VMs migrate, as Harvester does.",
    )

    @model_validator(mode="after")
    def _limits_nest(self) -> "BudgetPolicy":
        cluster = self.max_in_flight_per_cluster
        outbound = self.max_outbound_per_node
        if cluster is not None and outbound is not None and outbound > cluster:
            raise ValueError(
                f"maxOutboundPerNode ({outbound}) must not exceed maxInFlightPerCluster ({cluster})"
            )
        if cluster is not None and cluster > self.max_per_cycle:
            raise ValueError(
                f"maxInFlightPerCluster ({cluster}) must not exceed maxPerCycle"
                f" ({self.max_per_cycle})"
            )
        return self


class HoldPolicy(Section):
    """How freed room is kept until the pending VM is bound."""

    kind: HoldKind = Field(
        default=HoldKind.LOCK_POD,
        description="LockPod: a pod of ours keeps every other pod off the node until the pending VM"
        " is bound. None: room is not kept, for clusters where nothing else arrives.",
    )
    image: str = Field(
        default="registry.k8s.io/pause:3.10",
        min_length=1,
        description="Image of the lock pod; it does nothing and needs no room.",
    )


class ExecutionPolicy(Section):
    """How moves are carried out."""

    namespace: str = Field(
        default="kubevirt-rebalancer",
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        max_length=63,
        description="Where the rebalancer keeps its Lease and its lock pods.",
    )
    budget: BudgetPolicy = BudgetPolicy()
    hold: HoldPolicy = HoldPolicy()
    bind_timeout_seconds: int = Field(
        default=120, ge=1, description="How long to wait for the pending VM once room is free."
    )
    start_timeout_seconds: int = Field(
        default=600,
        ge=1,
        description="How long a plan waits for a budget to let its next migration start.",
    )
    failure_backoff_seconds: int = Field(
        default=600,
        ge=0,
        description="A VM whose last migration failed is left alone this long, doubled for each"
        " failure before it.",
    )
    cooldown_seconds: int = Field(
        default=600,
        ge=0,
        description="A VM that has been migrated, by whomever, is left alone this long.",
    )
    max_rounds_per_cycle: int = Field(
        default=3, ge=1, description="How often one cycle plans anew after a surprise."
    )


class StrategySection(Section):
    """How one strategy takes part; `policy_type` puts in its default mode and its settings."""

    mode: Mode = Field(
        default=Mode.OFF,
        description="Off: the strategy is not asked. Recommend: what it proposes is shown, never"
        " carried out. Automatic: it is carried out.",
    )
    settings: Section = Section()
