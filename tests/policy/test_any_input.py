"""Whatever is in the file or the environment: a policy or an error that says what is wrong."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import InputError
from rebalancer.policy.environment import variable_of
from rebalancer.policy.load import load_policy, read_policy
from rebalancer.policy.problems import PolicyError
from rebalancer.policy.root import RebalancerPolicy, policy_type
from rebalancer.policy.schema import KeyPath, keys
from rebalancer.policy.text import text_in_force
from tests.policy.strategies import STRATEGIES

HEADER = {"apiVersion": "rebalancer/v1alpha1", "kind": "RebalancerPolicy"}
KEYS = keys(policy_type(STRATEGIES))
NAMES = sorted({str(path[-1]) for path in KEYS})
VALUES = [path for path, key in KEYS.items() if not key.is_section and len(path) > 1]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["Off", "Automatic", "LockPod", "UTC", "0 2 * * mon", "null", "0", "1"])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
"""Structures with names of the policy's keys in all the wrong places."""


def usual(path: KeyPath) -> st.SearchStrategy[object]:
    """Values that the key accepts, if those of other keys go with them."""
    key = KEYS[path]
    match path[-1]:
        case "cron":
            return st.sampled_from([None, "0 2 * * mon-fri", "*/5 0-6 1 jan *"])
        case "timeZone":
            return st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Ushuaia"])
        case "namespace":
            return st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
    if "enum" in key.schema:
        return st.sampled_from(key.schema["enum"])
    of_type: dict[str, st.SearchStrategy[object]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(1, 2**53),
        "number": st.floats(0.001, key.schema.get("maximum", 1e12)),
        "string": st.text(min_size=1) if path[-1] == "image" else st.just("none"),
        "array": st.lists(st.text()),
    }
    return st.one_of(*(of_type[name] for name in sorted(key.types)))


usual_values = st.sets(st.sampled_from(VALUES)).flatmap(
    lambda paths: st.fixed_dictionaries({path: usual(path) for path in sorted(paths)})
)


@contextlib.contextmanager
def file_with(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        file.write_text(text, encoding="utf-8", newline="")
        yield file


def load_or_refuse(text: str) -> RebalancerPolicy | None:
    with file_with(text) as file:
        try:
            return load_policy(file, STRATEGIES, {})
        except InputError as error:
            refusal = error
        problems = refusal.problems if isinstance(refusal, PolicyError) else [refusal]
        assert problems
        assert all(str(problem).startswith(str(file)) for problem in problems)
    return None


def nested(values: dict[KeyPath, object]) -> dict[str, Any]:
    document: dict[str, Any] = dict(HEADER)
    for path, value in values.items():
        section = document
        for name in path[:-1]:
            section = section.setdefault(str(name), {})
        section[str(path[-1])] = value
    return document


@given(anything)
def test_any_structure_is_a_policy_or_refused(structure: object) -> None:
    load_or_refuse(yaml.safe_dump(structure, allow_unicode=True))
    load_or_refuse(json.dumps(structure))


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(), anything, max_size=4))
def test_anything_in_any_section_is_a_policy_or_refused(sections: dict[str, object]) -> None:
    load_or_refuse(json.dumps({**sections, **HEADER}))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    load_or_refuse(text)


@given(st.dictionaries(st.sampled_from(VALUES), anything, max_size=6))
def test_anything_as_the_value_of_a_key_is_a_policy_or_refused(
    values: dict[KeyPath, object],
) -> None:
    load_or_refuse(json.dumps(nested(values)))


@given(usual_values)
def test_policy_that_is_accepted_is_shown_as_the_same_policy(
    values: dict[KeyPath, object],
) -> None:
    policy = load_or_refuse(json.dumps(nested(values)))
    if policy:
        again = load_or_refuse(text_in_force(policy, {}))
        assert again
        assert again.model_dump() == policy.model_dump()


@given(st.dictionaries(st.sampled_from(VALUES), st.text() | scalars.map(str), max_size=6))
def test_any_environment_gives_a_policy_or_is_refused_by_name(
    values: dict[KeyPath, str],
) -> None:
    environ = {variable_of(path): text for path, text in values.items()}
    try:
        read_policy(None, STRATEGIES, environ)
    except PolicyError as error:
        for problem in error.problems:
            assert problem.variables
            assert set(problem.variables) <= set(environ)
