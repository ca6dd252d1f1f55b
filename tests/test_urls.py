"""The URLs of the operations are those of the contract, in its order."""

import pytest
from django.urls import resolve

from roombook import urls
from tests.contract.schema import EXTENSIONS
from tests.contract.tables import OPERATIONS


@pytest.mark.parametrize(
    ("table", "operations"), [(urls.contract_paths, OPERATIONS), (urls.extension_paths, EXTENSIONS)]
)
def test_operations_have_their_paths_in_the_order_of_the_contract(table, operations):
    for address, operation in zip(table, operations, strict=True):
        assert resolve(operation.path).route == str(address.pattern)
        assert address.name == operation.path.removeprefix("/")
        assert address.callback.cls.requires_token is operation.needs_token
        for suffix in ("json", "csv"):
            assert resolve(f"{operation.path}.{suffix}").kwargs == {"format": suffix}
