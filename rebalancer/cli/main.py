"""Entry point: commands, and errors to exit codes."""

import sys
from io import TextIOWrapper

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.demo import demo
from rebalancer.cli.drain import drain
from rebalancer.cli.explain import explain
from rebalancer.cli.garbage import collect_seldom
from rebalancer.cli.plan import plan
from rebalancer.cli.policy import policy_app
from rebalancer.cli.rolling import rolling
from rebalancer.cli.run import run
from rebalancer.cli.serve import serve
from rebalancer.cli.terminal import console
from rebalancer.errors import InputError, RebalancerError
from rebalancer.report.text import printable

app = typer.Typer(
    name="rebalancer",
    help="Live-migrates KubeVirt virtual machines so that a Pending one fits.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they may show the values of variables, secrets among them
)
app.command()(demo)
app.command()(plan)
app.command()(run)
app.command()(serve)
app.command()(drain)
app.command()(rolling)
app.command()(explain)
app.add_typer(policy_app, name="policy")


def main() -> None:
    """Runs the command; bad input ends with 2, everything else that fails with 1."""
    collect_seldom()
    if isinstance(sys.stdout, TextIOWrapper):
        # A character that the terminal's encoding lacks is shown as an escape, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="rebalancer")
    except RebalancerError as error:
        text = "\n".join(printable(line) for line in str(error).splitlines())
        console(sys.stderr).print(f"error: {text}", style="red", soft_wrap=True)
        is_bad_input = isinstance(error, InputError)
        sys.exit(exit_codes.BAD_INPUT if is_bad_input else exit_codes.FAILED)


if __name__ == "__main__":
    main()
