"""What is installed is what is in the tree."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_package_in_the_tree_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    in_tree = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for folder in ("rebalancer", "strategies")
        for path in (ROOT / folder).rglob("__init__.py")
    }
    installed = set(project["tool"]["setuptools"]["packages"])
    assert installed == {
        name.replace("strategies", "rebalancer_strategies", 1)
        if name.startswith("strategies")
        else name
        for name in in_tree
    }
