"""The contract is stated three times: serializers, hand-written tables, docs/contract.md."""

import re

import pytest
from django.urls import get_resolver

from accounts.models import UserType
from centers.search import AreaType
from reservations.models import LineItemType
from reservations.models.status import Status
from roombook import urls
from roombook.api import fields
from roombook.api.serializers import ContractListSerializer, ContractSerializer
from tests.contract.docs_page import BLOCK, PAGE, render_page
from tests.contract.schema import (
    ALL_OPERATIONS,
    CONTRACT,
    TYPES,
    build_contract,
    find_serializer_classes,
    get_element_type,
    get_operations,
    get_type_name,
    is_list_type,
)
from tests.contract.tables import CONTRACT_TYPES, ENUMERATIONS, OPERATIONS, ContractSchema

VIEWS = list(get_operations([*urls.contract_paths, *urls.extension_paths]).values())
TYPES_BY_FIELD_CLASS = {
    fields.IntegerField: {"int", "int?"},
    fields.BooleanField: {"bool", "boolean"},
    fields.DoubleField: {"double"},
    fields.DecimalField: {"decimal"},
    fields.DateTimeField: {"DateTime"},
    fields.ObjectField: {"object"},
    fields.ChoiceField: {"string", *ENUMERATIONS},
    fields.UrlField: {"string"},
    fields.TextField: {"string", *ENUMERATIONS},
}


def ordered(contract):
    """The contract as lists, so that the order of operations and fields counts."""
    operations = [
        (
            each.name,
            each.path,
            list(each.request.items()),
            list(each.response.items()),
            each.needs_token,
        )
        for each in contract.operations.values()
    ]
    return operations, {name: list(each.items()) for name, each in contract.types.items()}


def test_serializers_and_tables_tell_the_same_contract():
    operations, types = ordered(CONTRACT)
    tables = {each.name: each for each in OPERATIONS}

    assert ordered(build_contract(get_resolver().url_patterns)) == (operations, types)
    assert ordered(ContractSchema(tables, CONTRACT_TYPES)) == (
        operations[: len(OPERATIONS)],
        {name: types[name] for name in CONTRACT_TYPES},
    )


def test_contract_page_has_everything_and_is_up_to_date():
    page = PAGE.read_text()
    blocks = {(kind, name) for kind, names in BLOCK.findall(page) for name in names.split()}

    assert blocks == {
        *(("operations", name) for name in ("contract", "extensions")),
        *(("types", name) for name in TYPES),
    }
    assert render_page(page) == page, "Run `make contract-docs`."


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_fields_have_a_class_that_fits_their_contract_type(view):
    pending = [*view.Input().fields.items(), *view.Output().fields.items()]
    while pending:
        name, field = pending.pop()
        type_name = get_type_name(field)
        if is_list_type(type_name):
            assert isinstance(field, ContractListSerializer | fields.ListField), name
            assert get_type_name(field.child) == get_element_type(type_name), name
            field = field.child
        if isinstance(field, ContractSerializer):
            pending += field.fields.items()
        else:
            allowed = next(
                allowed for cls, allowed in TYPES_BY_FIELD_CLASS.items() if isinstance(field, cls)
            )
            assert get_type_name(field) in allowed, name


def test_a_class_that_renders_a_part_of_a_type_has_the_types_fields_in_order():
    whole = find_serializer_classes(VIEWS)
    found = {}
    pending = [view.Output() for view in VIEWS]
    while pending:
        for field in pending.pop().fields.values():
            inner = getattr(field, "child", field)
            if isinstance(inner, ContractSerializer):
                pending.append(inner)
                if inner.contract_type:
                    found[type(inner).__name__] = inner

    assert list(found) == ["ReservationSummary"]
    for part in found.values():
        names = list(part.fields)
        assert names == [name for name in whole[part.contract_type]().fields if name in names]
        for name in names:
            expected = whole[part.contract_type]().fields[name]
            assert get_type_name(part.fields[name]) == get_type_name(expected)


def test_there_are_thirteen_operations_and_each_has_its_path():
    assert len(OPERATIONS) == 13
    assert len({each.path for each in ALL_OPERATIONS}) == len(ALL_OPERATIONS)


def test_enumerations_have_the_values_that_the_contract_names():
    enumerations = {
        "UserTypes": UserType,
        "AreaTypes": AreaType,
        "ReservationStatuses": Status,
        "LineItemType": LineItemType,
    }

    assert set(enumerations) == set(ENUMERATIONS)
    for name, values in ENUMERATIONS.items():
        assert values <= {str(each) for each in enumerations[name]}, name


def test_documentation_lists_all_values_of_enumerations():
    rows = re.findall(r"^\| (\w+) \| [^|]* \| ([^|]*) \|$", PAGE.read_text(), re.M)
    values = {name: set(re.findall(r"`([^`]+)`", text)) for name, text in rows}

    assert values["UserTypes"] == {str(each) for each in UserType}
    assert values["ReservationStatuses"] == set(Status.values)
    assert values["LineItemType"] == set(LineItemType.values)
    assert values["AreaTypes"] == {str(each) for each in AreaType}
