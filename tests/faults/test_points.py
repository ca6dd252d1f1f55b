"""The points at which faults happen exist in the code."""

from importlib import import_module
from operator import attrgetter

import pytest

from tests.faults.points import POINTS


@pytest.mark.parametrize("point", POINTS)
def test_point_is_a_function(point):
    module, path = POINTS[point]

    assert callable(attrgetter(path)(import_module(module)))
