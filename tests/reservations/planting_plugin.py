"""A plugin of pytest: runs the chosen tests with each planted defect of a group.

`-p tests.reservations.planting_plugin --plant=prices --found=FILE` runs them without a defect, and
then with each until one fails, and writes which one that was. A test that fails for another reason
than what it asserts, such as a name that has moved, has found nothing.
"""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

# What a defect raises whose function has another name or other arguments now, and a test whose
# fixture is gone.
MOVED_NAMES = (TypeError, AttributeError, NameError, ImportError, LookupError)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plant", required=True)
    parser.addoption("--found", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Planter())


class Planter:
    """Runs all tests once for each defect. Once a test has failed, the others are skipped."""

    def __init__(self) -> None:
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self.failed:
            pytest.skip("The defect is found.")

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
            return
        is_moved = call.excinfo.errisinstance(MOVED_NAMES)
        failed = f"{item.name}: {call.excinfo.exconly()}" if is_moved else item.nodeid
        self.failed = self.failed or failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # Plugins are loaded before Django's settings.
        from tests.reservations.planted_defects import GROUPS, end_endless_attempts, plant

        defects = GROUPS[session.config.getoption("plant")]
        rounds = [(name, item) for name in ["", *defects] for item in session.items]
        found: dict[str, str] = {}
        following = [*(item for _, item in rounds[1:]), None]
        for (name, item), next_item in zip(rounds, following, strict=True):
            if item is session.items[0]:
                self.failed = ""
            with plant(*defects[name]) if name else nullcontext(), end_endless_attempts():
                item.ihook.pytest_runtest_protocol(item=item, nextitem=next_item)
            found[name] = self.failed
        session.config.getoption("found").write_text(json.dumps(found))
        return True
