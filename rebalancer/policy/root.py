"""The root of the policy, with a section for each strategy that is installed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import (
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from rebalancer.errors import InputError
from rebalancer.policy.measured_load import MeasuredLoadPolicy, PrometheusPolicy
from rebalancer.policy.model import (
    CostPolicy,
    ExecutionPolicy,
    Mode,
    PlanningPolicy,
    SchedulePolicy,
    Section,
    StrategySection,
    title,
)

_STRATEGY_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


class StrategyType(Protocol):
    """What the policy must know about a strategy; `rebalancer.strategy.Strategy` has it."""

    @property
    def settings_type(self) -> type[Section]: ...

    @property
    def default_mode(self) -> Mode: ...

    @property
    def contradictions(self) -> Callable[[Any, "RebalancerPolicy"], Sequence[str]]: ...


class StrategiesSection(Section):
    """The strategies, asked in the order in which they stand here."""


class RebalancerPolicy(BaseSettings):
    """The policy but for its strategies, which `policy_type` adds.

    `read_policy` hands over the sources of its values; made without them, an instance holds its
    arguments and defaults, whatever the environment.
    """

    model_config = SettingsConfigDict(
        alias_generator=to_camel,
        field_title_generator=title,
        case_sensitive=True,
        extra="forbid",
        frozen=True,
    )

    api_version: Literal["rebalancer/v1alpha1"]
    kind: Literal["RebalancerPolicy"]
    schedule: SchedulePolicy = SchedulePolicy()
    planning: PlanningPolicy = PlanningPolicy()
    cost: CostPolicy = CostPolicy()
    execution: ExecutionPolicy = ExecutionPolicy()
    prometheus: PrometheusPolicy = PrometheusPolicy()
    measured_load: MeasuredLoadPolicy = MeasuredLoadPolicy()
    strategies: StrategiesSection = StrategiesSection()

    @field_validator("*", mode="before")
    @classmethod
    def _read_strictly(cls, value: object, info: ValidationInfo) -> object:
        """Reads a value as JSON: `true` is no 1, `"5"` no 5, and `max_moves` not `maxMoves`."""
        expected: Any = cls.model_fields[str(info.field_name)].annotation
        text = to_json(value, by_alias=True)
        return TypeAdapter(expected).validate_json(text, strict=True, by_name=False)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class EnabledStrategy(NamedTuple):
    name: str
    mode: Mode
    settings: Section


def policy_type(strategies: Mapping[str, StrategyType]) -> type[RebalancerPolicy]:
    """The policy with a section for each strategy, in the order given.

    Raises: InputError if a strategy's name or settings cannot be part of a policy.
    """
    sections: dict[str, Any] = {}
    for name, strategy in strategies.items():
        section = _strategy_section(name, strategy)
        sections[name] = (section, Field(default=section(), alias=name, title=name))
    strategies_type = create_model(
        "Strategies", __base__=StrategiesSection, __doc__=StrategiesSection.__doc__, **sections
    )

    def go_together(policy: RebalancerPolicy) -> RebalancerPolicy:
        found = [
            f"strategies.{name}: {contradiction}"
            for name, _, settings in enabled_strategies(policy)
            for contradiction in strategies[name].contradictions(settings, policy)
        ]
        if found:
            raise ValueError("; ".join(found))
        return policy

    validators: dict[str, Any] = {"go_together": model_validator(mode="after")(go_together)}
    return create_model(
        "RebalancerPolicy",
        __base__=RebalancerPolicy,
        __doc__="What the rebalancer may do, when, and what it weighs.",
        __validators__=validators,
        strategies=(strategies_type, strategies_type()),
    )


def enabled_strategies(policy: RebalancerPolicy) -> list[EnabledStrategy]:
    """The strategies that are not Off: those that the policy names in its order, then the rest."""
    sections: dict[str, StrategySection] = dict(policy.strategies)
    return [
        EnabledStrategy(name, section.mode, section.settings)
        for name, section in sections.items()
        if section.mode is not Mode.OFF
    ]


def _strategy_section(name: str, strategy: StrategyType) -> type[StrategySection]:
    if not _STRATEGY_NAME.fullmatch(name):
        raise InputError(f"strategy {name}: its name must be letters and digits in PascalCase")
    try:
        settings = strategy.settings_type()
    except ValidationError as error:
        missing = ", ".join(str(problem["loc"][0]) for problem in error.errors())
        raise InputError(f"strategy {name}: its settings lack a default for {missing}") from error
    mode = StrategySection.model_fields["mode"]
    return create_model(
        name,
        __base__=StrategySection,
        mode=(Mode, Field(default=strategy.default_mode, description=mode.description)),
        settings=(strategy.settings_type, settings),
    )
