"""What the documents show is there: files, commands, exit codes, output."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rebalancer.cli import exit_codes
from rebalancer.cli.main import app
from rebalancer.cluster.kinds import SNAPSHOT_KINDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def anchors(document: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_readme_has_every_command() -> None:
    named = set(re.findall(r"^\| `rebalancer (\w+)` \|", README, re.MULTILINE))
    commands = {
        command.callback.__name__ for command in app.registered_commands if command.callback
    }
    assert named == commands | {group.name for group in app.registered_groups}


def test_readme_has_every_exit_code() -> None:
    codes = {value for _, value in inspect.getmembers(exit_codes, lambda x: isinstance(x, int))}
    assert {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)} == codes


def test_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    found = re.search(r"^```\n(NAME .*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "REBALANCER_"))}
    command = [sys.executable, "-m", "rebalancer.cli.main", "demo", "--speed", "1000000"]
    environment = {**clean, "PYTHONPATH": str(ROOT)}
    demo = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    printed = demo.stdout.splitlines()
    shown = [line for line in found[1].splitlines() if line not in {"", "..."}]
    assert [line for line in shown if line not in printed] == []


def test_readme_dumps_every_kind_that_a_snapshot_is_made_of() -> None:
    found = re.search(r"kubectl get --all-namespaces -o json (\S+) >", README)
    assert found
    long = {
        "vmi": "virtualmachineinstances",
        "vmim": "virtualmachineinstancemigrations",
        "pvc": "persistentvolumeclaims",
        "pv": "persistentvolumes",
    }
    dumped = {long.get(name, name) for name in found[1].split(",")}
    optional = re.search(r"Where Multus is installed, add `(\S+)` to the list", README)
    assert optional
    assert dumped | {optional[1]} == {kind.plural for kind in SNAPSHOT_KINDS}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    text = (ROOT / "docs" / "dependencies.md").read_text()
    table = text.partition("## At run time")[2].partition("\n\nWhat")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == needed
