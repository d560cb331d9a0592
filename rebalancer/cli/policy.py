"""`rebalancer policy`: check a policy, describe its format, show the one in force."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.options import Output, OutputOption
from rebalancer.errors import InputError
from rebalancer.policy.load import load_policy, read_policy
from rebalancer.policy.problems import PolicyError, Problem
from rebalancer.policy.schema import dotted, json_schema
from rebalancer.policy.text import changes, default_text, text_in_force
from rebalancer.report.plan_json import to_json
from rebalancer.strategy import load_strategies

policy_app = typer.Typer(
    help="Check a policy, show the one in force.", no_args_is_help=True, rich_markup_mode=None
)


class Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", envvar="REBALANCER_POLICY", help="Policy file; without one, defaults."
    ),
]
FormatOption = Annotated[Format, typer.Option("--output", "-o", help="YAML or JSON.")]


@policy_app.command()
def validate(file: FileArgument = None, output: OutputOption = Output.TABLE) -> None:
    """Check a policy; all its problems are told at once."""
    try:
        load_policy(file, load_strategies(), os.environ)
    except InputError as error:
        if output is not Output.JSON:
            raise
        problems = error.problems if isinstance(error, PolicyError) else [Problem(str(error))]
        typer.echo(to_json(_verdict(problems)))
        raise typer.Exit(exit_codes.BAD_INPUT) from error
    typer.echo(to_json(_verdict([])) if output is Output.JSON else f"{file or 'defaults'}: valid")


@policy_app.command()
def schema() -> None:
    """Print the JSON Schema of a policy file, for editors."""
    typer.echo(to_json(json_schema(load_strategies())))


@policy_app.command()
def default() -> None:
    """Print the default policy, every key explained."""
    typer.echo(default_text(load_strategies()), nl=False)


@policy_app.command()
def show(file: FileArgument = None, output: FormatOption = Format.YAML) -> None:
    """Print the policy in force and where it comes from."""
    policy, origins = read_policy(file, load_strategies(), os.environ)
    if output is Format.YAML:
        typer.echo(text_in_force(policy, origins), nl=False)
        return
    changed = {dotted(path): origin for path, origin in changes(policy, origins).items()}
    document = policy.model_dump(mode="json", by_alias=True)
    typer.echo(to_json({"policy": document, "origins": changed}))


def _verdict(problems: Sequence[Problem]) -> dict[str, Any]:
    return {"valid": not problems, "problems": msgspec.to_builtins(problems)}
