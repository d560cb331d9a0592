"""`rebalancer policy`: check a policy, describe its format, show the one in force."""

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli import exit_codes
from rebalancer.errors import InputError
from rebalancer.policy.load import load_policy, read_policy
from rebalancer.policy.problems import PolicyError, Problem
from rebalancer.policy.schema import dotted, json_schema
from rebalancer.policy.text import changes, text_in_force
from rebalancer.report.plan_json import to_json
from rebalancer.strategy import load_strategies

policy_app = typer.Typer(
    help="Check and show the policy.", no_args_is_help=True, rich_markup_mode=None
)
