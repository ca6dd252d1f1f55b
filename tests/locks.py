"""The locks of this repository: what they list, and environments with exactly that."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from importlib import metadata
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
# What tests install that only the long form runs.
LONG_LOCK = "tests/long/requirements.txt"
MUTANTS_LOCK = "tests/mutants/requirements.txt"
# For each lock, the groups of pyproject.toml that `make lock` compiles into it. "" is the service.
LOCKS = {
    "requirements.txt": [""],
    "requirements-dev.txt": ["", "dev"],
    "deploy/tracing.txt": ["tracing"],
    LONG_LOCK: ["long"],
    MUTANTS_LOCK: ["mutants"],
}
# The locks serve these versions of Python, on these systems.
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
SYSTEMS = {"linux": "Linux", "darwin": "Darwin"}


def read_lock(name: str) -> list[Requirement]:
    """The packages of a lock. Each has one version, `==`, and maybe a marker."""
    lines = re.findall(r"^[a-z0-9].*?(?= *\\?$)", (ROOT / name).read_text(), re.M)
    return [Requirement(line) for line in lines]


def read_roots(name: str) -> list[Requirement]:
    """The requirements of pyproject.toml that a lock is compiled from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = {"": project["project"]["dependencies"], **project["dependency-groups"]}
    return [Requirement(each) for group in LOCKS[name] for each in groups[group]]


def find_unmet_anywhere(
    name: str, read_requirements: Callable[[str], Iterable[str]]
) -> dict[str, list[str]]:
    """The requirements that a lock does not meet, by supported system and version of Python."""
    unmet = {}
    for version, (platform, system) in product(PYTHONS, SYSTEMS.items()):
        environment = {
            "python_version": version,
            "python_full_version": f"{version}.0",
            "sys_platform": platform,
            "platform_system": system,
        }
        found = find_unmet(read_roots(name), read_lock(name), environment, read_requirements)
        if found:
            unmet[f"{system}, Python {version}"] = found
    return unmet


def find_unmet(
    roots: list[Requirement],
    lock: list[Requirement],
    environment: dict[str, str],
    read_requirements: Callable[[str], Iterable[str]],
) -> list[str]:
    """Follow the requirements of the roots and of all locked packages, and return the unmet ones.

    Each is returned after the package that has it. `environment` replaces the values of markers in
    this process. `read_requirements` returns what a package declares, with its extras' markers.
    """
    locked = {canonicalize_name(each.name): each for each in lock if applies(each, environment)}
    unmet, seen = [], set()
    waiting = [("pyproject.toml", each) for each in roots + lock if applies(each, environment)]
    while waiting:
        owner, requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        specifier, found = requirement.specifier, locked.get(name)
        if found is None or not specifier.contains(get_version(found), prereleases=True):
            unmet.append(f"{owner}: {requirement}")
            continue
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            declared = [Requirement(each) for each in read_requirements(name)]
            waiting += [(name, each) for each in declared if applies(each, environment, extra)]
    return sorted(unmet)


def applies(
    requirement: Requirement, environment: dict[str, str] | None = None, extra: str = ""
) -> bool:
    """Whether the marker holds in this process, with the values of an environment replaced."""
    values = {**(environment or {}), "extra": extra}
    return requirement.marker is None or requirement.marker.evaluate(values)


def get_version(requirement: Requirement) -> str:
    [pin] = requirement.specifier
    assert pin.operator == "==", requirement
    return pin.version


def install_lock(name: str, folder: Path) -> Path:
    """Create an environment with the packages of a lock, and return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    programs = folder / "bin"
    words = ["install", "--quiet", "--no-deps", "--require-hashes", "--requirement", name]
    subprocess.run([programs / "pip", *words], cwd=ROOT, check=True)
    subprocess.run([programs / "pip", "check"], check=True)
    return programs


def install_node_packages(folder: Path) -> None:
    """Install the locked packages of Node into a folder."""
    for name in ["package.json", "package-lock.json"]:
        shutil.copy((ROOT / LONG_LOCK).with_name(name), folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


def read_installed(folder: Path) -> dict[str, metadata.Distribution]:
    """The packages of an environment by their names, without those that install others."""
    paths = [str(path) for path in folder.glob("lib/python*/site-packages")]
    found = {canonicalize_name(each.name): each for each in metadata.distributions(path=paths)}
    return {name: each for name, each in found.items() if name not in {"pip", "setuptools"}}
