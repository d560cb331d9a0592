"""Kubernetes quantities to exact integers."""

import re
from fractions import Fraction
from functools import lru_cache

from rebalancer.errors import QuantityError

# The grammar of k8s.io/apimachinery pkg/api/resource/quantity.go: digits may lack on one
# side of the point, `E` alone is exa, `E` or `e` with digits an exponent, `K` without `i` unknown.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_FACTORS = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("num", start=-3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_INT64_MAX = 2**63 - 1
_LONGEST = 1000
"""Characters. The API server writes quantities with 20 at most; Python gives up at 4300 digits."""
_SHOWN_CHARACTERS = 80


@lru_cache(maxsize=8192)
def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity, in its base unit (cores, bytes, pieces).

    Raises: QuantityError for what the API server would not accept or could only hold capped.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(f"{_shown(text)} is not a quantity (such as 500m, 16G, 1.5Gi or 1e3)")
    value = Fraction(match["number"])
    if match["suffix"]:
        value *= _FACTORS[match["suffix"]]
    elif match["exponent"]:
        value *= Fraction(10) ** int(match["exponent"])
    if abs(value) > _INT64_MAX:
        raise QuantityError(f"{_shown(text)} is larger than a quantity can be (2^63 - 1)")
    return value


def parse_amount(text: str, resource: str) -> int:
    """An amount of a resource as the scheduler counts it: millicores of cpu, else whole units.

    Fractions are rounded up, as `Quantity.MilliValue` and `Quantity.Value` do.

    Raises: QuantityError; negative amounts are no amounts.
    """
    value = parse_quantity(text)
    if resource == "cpu":
        value *= 1000
    if value < 0:
        raise QuantityError(f"{_shown(text)} is negative")
    amount = -(-value.numerator // value.denominator)
    if amount > _INT64_MAX:
        raise QuantityError(f"{_shown(text)} is larger than a quantity can be (2^63 - 1)")
    return amount


def format_amount(amount: int, resource: str) -> str:
    """An amount for people: millicores, MiB to one decimal, or the plain count."""
    if resource == "cpu":
        return f"{amount}m"
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return f"{amount / 2**20:.1f} MiB".replace(".0 MiB", " MiB")
    return str(amount)


def _shown(text: str) -> str:
    """Quoted, and cut where no quantity could be so long."""
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}…"
