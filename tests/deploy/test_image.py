"""The image is built from pinned packages and from nothing that does not belong in it."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.deploy.rendering import ROOT, rebalancer_pod, render

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCKS = {
    "requirements.lock": PROJECT["project"]["dependencies"],
    "requirements-dev.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["dev"],
    ],
}
PIN = re.compile(
    r"^([a-z0-9-]+)==([^ ]+)(?: ; (.*))? \\\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)", re.M
)


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_pins_what_the_project_asks_for_by_hash(lock: str) -> None:
    pins: dict[str, list[str]] = {}
    for name, version, _, hashes in PIN.findall((ROOT / lock).read_text()):
        assert hashes
        pins.setdefault(name, []).append(version)
    for requirement in map(Requirement, LOCKS[lock]):
        assert pins.get(requirement.name), f"{requirement.name} is missing: run `make lock`"
        for version in pins[requirement.name]:
            assert version in requirement.specifier, f"{requirement}: run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_address_and_no_place(lock: str) -> None:
    text = (ROOT / lock).read_text()
    for line in text.splitlines():
        assert re.match(r"[a-z0-9-]+==|    --hash=sha256:|    #( via)?( |$)", line), line
    assert "//" not in text


def test_image_runs_as_the_user_that_the_manifests_name() -> None:
    security = rebalancer_pod(render(ROOT / "deploy" / "cronjob"))["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in DOCKERFILE


def test_image_gets_what_the_build_needs_and_no_more() -> None:
    ignored, *allowed = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert ignored == "*"
    copied = {line.removeprefix("!") for line in allowed if line.startswith("!")}
    project = PROJECT["project"]
    needed = {"pyproject.toml", "requirements.lock", project["readme"], *project["license-files"]}
    packages = PROJECT["tool"]["setuptools"]["packages"]
    renamed = PROJECT["tool"]["setuptools"]["package-dir"]
    roots = {renamed.get(package, package) for package in packages if "." not in package}
    assert copied == needed | roots
