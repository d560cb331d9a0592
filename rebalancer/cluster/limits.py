"""What limits the pods of a namespace, out of its wire form; each function raises FieldError."""

from collections.abc import Mapping

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import label_selector
from rebalancer.cluster.fields import FieldError, amounts, required
from rebalancer.cluster.kinds import VMI
from rebalancer.errors import QuantityError
from rebalancer.model.objects import (
    LimitRange,
    LimitRangeItem,
    PodDisruptionBudget,
    ResourceQuota,
    ScopeRequirement,
)
from rebalancer.model.quantity import parse_amount


def convert_quota(quota: wire.ResourceQuota) -> ResourceQuota:
    metadata = quota.metadata or wire.Metadata()
    spec = quota.spec or wire.QuotaSpec()
    status = quota.status or wire.QuotaStatus()
    selector = spec.scope_selector or wire.ScopeSelector()
    return ResourceQuota(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        hard=_by_key(spec.hard, "spec.hard"),
        used=_by_key(status.used, "status.used"),
        scopes=(
            *(ScopeRequirement(scope) for scope in spec.scopes or ()),
            *(
                ScopeRequirement(each.scope_name, each.operator, tuple(each.values or ()))
                for each in selector.match_expressions or ()
            ),
        ),
    )


def convert_limit_range(limit_range: wire.LimitRange) -> LimitRange:
    metadata = limit_range.metadata or wire.Metadata()
    spec = limit_range.spec or wire.LimitRangeSpec()
    return LimitRange(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        items=tuple(
            LimitRangeItem(
                type=item.type or "",
                max=amounts(item.max, f"spec.limits[{i}].max"),
                default_limit=amounts(item.default, f"spec.limits[{i}].default"),
            )
            for i, item in enumerate(spec.limits or ())
        ),
    )


def convert_disruption_budget(budget: wire.PodDisruptionBudget) -> PodDisruptionBudget:
    metadata = budget.metadata or wire.Metadata()
    spec = budget.spec or wire.DisruptionBudgetSpec()
    owners = metadata.owner_references or ()
    return PodDisruptionBudget(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        selector=label_selector(spec.selector),
        disruptions_allowed=budget.status.disruptions_allowed if budget.status else None,
        is_of_kubevirt=any(owner.kind == VMI.name for owner in owners),
    )


def _by_key(quantities: Mapping[str, wire.Quantity] | None, field: str) -> dict[str, int]:
    """As `amounts`, for keys such as `requests.cpu`, which is in millicores too."""
    parsed = {}
    for key, quantity in (quantities or {}).items():
        resource = key.removeprefix("requests.").removeprefix("limits.")
        try:
            parsed[key] = parse_amount(str(quantity), resource)
        except QuantityError as error:
            raise FieldError(f"{field}.{key}", str(error)) from error
    return parsed
