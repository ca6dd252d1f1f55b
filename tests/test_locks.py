"""The locks are closed: they contain whatever the packages that they list require."""

from importlib import metadata

import pytest
from packaging.requirements import Requirement

from tests.locks import find_unmet, find_unmet_anywhere

PYTHON_312 = {"python_version": "3.12", "sys_platform": "linux"}
DECLARED = {
    "cover": ["cli>=7; extra == 'all'", "toml; python_version < '3.13' and extra == 'all'"],
    "unused": ["base"],
    "plugin": ["Cover[all]>=2", "colors; sys_platform == 'win32'"],
}


# The packages of the other locks are not in this environment: tests/faults/test_locks.py.
@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_lock_meets_all_requirements_on_each_version_of_python(lock):
    unmet = find_unmet_anywhere(lock, lambda name: metadata.requires(name) or [])

    assert unmet == {}


@pytest.mark.parametrize(
    ("lock", "unmet"),
    [
        (["plugin==1", "cover==2", "cli==7", "toml==1"], []),
        (["plugin==1", "cover==2", "cli==7"], ["cover: toml"]),
        (["plugin==1", "cover==2", "cli==7", "toml==1", "unused==1"], ["unused: base"]),
        (["plugin==1", "cover==2", "cli==6", "toml==1"], ["cover: cli>=7"]),
        (["plugin==1", "cover==1", "cli==7", "toml==1"], ["plugin: Cover[all]>=2"]),
        (["plugin==2", "cover==2", "cli==7", "toml==1"], ["pyproject.toml: plugin==1"]),
        (
            ["plugin==1", "cover==2", "cli==7", "toml==1; python_version < '3.12'"],
            ["cover: toml"],
        ),
    ],
)
def test_requirement_that_a_lock_does_not_meet_is_found(lock, unmet):
    found = find_unmet(
        [Requirement("plugin==1")],
        [Requirement(each) for each in lock],
        PYTHON_312,
        lambda name: DECLARED.get(name, []),
    )

    assert [each.split(";")[0] for each in found] == unmet
