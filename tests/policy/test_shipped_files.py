"""The files in config/ say what the code does; `UPDATE_GOLDEN=1` writes them anew."""

from pathlib import Path

from rebalancer.policy.load import load_policy
from rebalancer.policy.root import policy_type
from rebalancer.policy.schema import json_schema, keys
from rebalancer.policy.text import default_text
from rebalancer.report.plan_json import to_json
from rebalancer.strategy import load_strategies
from rebalancer.yaml import load_documents
from tests.golden import assert_golden

CONFIG = Path(__file__).parents[2] / "config"
STRATEGIES = load_strategies()


def test_schema_file_is_the_schema_of_the_code() -> None:
    assert_golden(CONFIG / "policy.schema.json", f"{to_json(json_schema(STRATEGIES))}\n")


def test_default_file_is_the_default_text_of_the_code() -> None:
    assert_golden(CONFIG / "policy.yaml", default_text(STRATEGIES))


def test_default_file_loads_to_the_built_in_policy() -> None:
    policy = load_policy(CONFIG / "policy.yaml", STRATEGIES, {})
    assert policy.model_dump() == load_policy(None, STRATEGIES, {}).model_dump()


def test_default_file_has_every_key() -> None:
    [document] = load_documents((CONFIG / "policy.yaml").read_text(), "policy.yaml")
    for path in keys(policy_type(STRATEGIES)):
        section = document
        for name in path:
            assert isinstance(section, dict)
            assert name in section, path
            section = section[name]
