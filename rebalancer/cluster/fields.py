"""Values of an object's fields, and errors that name the field and show the value."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.json import Decoder

from rebalancer.cluster.wire import Condition, Quantity
from rebalancer.errors import QuantityError
from rebalancer.model.quantity import parse_amount

T = TypeVar("T")


class FieldError(Exception):
    """A field's value is missing or cannot be read; the object's name is added further out."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def decode_field(data: bytes | msgspec.Raw, decoder: Decoder[T], field: str = "") -> T:
    """What the JSON holds.

    Raises: FieldError for a value of the wrong type, its place given below `field`;
    msgspec.DecodeError if it is no JSON at all.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _located(str(error), bytes(data), field) from error


def amounts(quantities: Mapping[str, Quantity] | None, field: str) -> dict[str, int]:
    """Amounts by resource name: cpu in millicores, everything else in whole units."""
    parsed = {}
    for resource, quantity in (quantities or {}).items():
        try:
            parsed[resource] = parse_amount(str(quantity), resource)
        except QuantityError as error:
            raise FieldError(f"{field}.{resource}", str(error)) from error
    return parsed


def amount(quantity: Quantity, field: str) -> int:
    """A number of bytes or pieces."""
    try:
        return parse_amount(str(quantity), "")
    except QuantityError as error:
        raise FieldError(field, str(error)) from error


def required(value: T | None, field: str) -> T:
    """The value, which must be there; an empty string or list is as good as none."""
    if value is None or value in ("", []):
        raise FieldError(field, "is missing")
    return value


def condition(conditions: Iterable[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, where there is one."""
    return next((found for found in conditions or () if found.type == type_), None)


_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_GOT = re.compile(r"got `(\w+)`")
_JSON_TYPES = {dict: "object", list: "array", type(None): "null"}
_SHOWN_CHARACTERS = 80


def _located(message: str, data: bytes, field: str) -> FieldError:
    """msgspec's message with the path made plain, and the value that is to blame in front."""
    match = _MESSAGE.fullmatch(message)
    problem, path = (match["problem"], match["path"] or "") if match else (message, "")
    problem = problem[0].lower() + problem[1:]
    try:
        value = msgspec.json.decode(data)
        for step in _STEP.finditer(path):
            key = _key(value, step, problem)
            field += f".{key}" if step["key"] else f"[{key}]"
            value = value[key]
        problem = f"{_shown(value)}: {problem}"
    except (LookupError, msgspec.DecodeError, RecursionError):
        field += f" ({path})"
    return FieldError(field.removeprefix(".") or "the object", problem)


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _key(value: object, step: re.Match[str], problem: str) -> Any:
    """Where the step leads; msgspec leaves open which entry of a mapping it means.

    Raises: LookupError if the value has no such place.
    """
    if isinstance(value, list) and step["index"]:
        return int(step["index"])
    if isinstance(value, dict) and step["key"]:
        return step["key"]
    got = _GOT.search(problem)
    if isinstance(value, dict) and step["any"] and got:
        for key, entry in value.items():
            if _json_type(entry) == got[1]:
                return key
    raise LookupError(step[0])


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), type(value).__name__)
