import pytest

from rebalancer.policy.root import policy_type
from rebalancer.policy.schema import dotted, json_schema, keys
from tests.policy.strategies import STRATEGIES

KEYS = keys(policy_type(STRATEGIES))


def test_schema_forbids_unknown_keys_in_every_section() -> None:
    schema = json_schema(STRATEGIES)
    sections = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    assert len(sections) > 10
    assert [part["title"] for part in sections if part["additionalProperties"] is not False] == []


def test_schema_asks_for_nothing_but_the_header() -> None:
    schema = json_schema(STRATEGIES)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["apiVersion", "kind"]
    assert [part for part in schema["$defs"].values() if part.get("required")] == []


def test_every_value_of_the_policy_says_what_it_is_for_and_what_it_may_be() -> None:
    own = [key for key in KEYS.values() if "SpreadHeadroom" not in key.path and len(key.path) > 1]
    values = [key for key in own if not key.is_section]
    assert [key.path for key in values if not key.schema.get("description")] == []
    assert [key.path for key in values if not key.allowed] == []


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("kind", "RebalancerPolicy"),
        ("execution", "a mapping"),
        ("execution.budget.maxInFlightPerCluster", "an integer of at least 1 or null"),
        ("execution.hold.image", "a string of length 1 or more"),
        ("planning.deadlineSeconds", "a number above 0"),
        ("schedule.cron", "a string or null"),
        ("strategies.FitPendingVMs.mode", "Off, Recommend or Automatic"),
        ("strategies.SpreadHeadroom.settings.zones", "a list"),
        (
            "strategies.SpreadHeadroom.settings.target.share",
            "a number of at least 0 and of at most 1",
        ),
        ("strategies.SpreadHeadroom.settings.limit", "an integer or none"),
    ],
)
def test_what_is_allowed_is_said_in_words(path: str, allowed: str) -> None:
    assert KEYS[tuple(path.split("."))].allowed == allowed


def test_path_stays_on_one_line() -> None:
    assert dotted(("strategies", "Fit\nPending\x1b", 0)) == r"strategies.'Fit\nPending\x1b'.0"
