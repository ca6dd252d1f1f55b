"""Refuses card numbers while the body is read, if CARD_NUMBERS is `refuse` (B21.4).

The parsers do so before they return the fields, and `BoundedRequest` drops the body, so that no
digit of a card reaches the rest of the program.
"""

import re
from collections.abc import Iterator, Mapping

from roombook.api.csv_table import FieldPath, join_path
from roombook.api.fields import DateTimeField, DoubleField, TextField
from roombook.api.serializers import AnyField, ContractSerializer
from roombook.card_numbers import contains_card_of_a_brand, has_digits_of_a_card
from roombook.errors import CardNumberRefused

REASON = (
    "Card numbers are refused. Save the card with api/account/create-payment-setup, and pay with"
    " UseSavedPaymentInfo."
)
# An unknown field that is probably a misspelled PaymentInfo or CreditCardNumber.
CARD_FIELD_NAME = re.compile("payment|card", re.IGNORECASE)


class CardDataField(TextField):
    """A number or a security code: it must have no value if card numbers are refused."""


def refuse_card_numbers(fields: Mapping[str, object], serializer: ContractSerializer) -> None:
    """Raise CardNumberRefused if the fields of a request may contain a card number.

    An operation that takes no card checks only unknown fields with the name of a card.
    """
    if not takes_card(serializer):
        fields = {name: value for name, value in fields.items() if is_misspelled(name, serializer)}
    paths = set(find_card_numbers(fields, serializer, is_card=False))
    if paths:
        lines = (": ".join(filter(None, [join_path(path), REASON])) for path in paths)
        raise CardNumberRefused(details=tuple(sorted(lines)))


def takes_card(field: AnyField) -> bool:
    inner_fields: Mapping[str, AnyField] = getattr(field, "fields", {})
    return isinstance(field, CardDataField) or any(map(takes_card, inner_fields.values()))


def is_misspelled(name: str, serializer: ContractSerializer) -> bool:
    return name not in serializer.fields and bool(CARD_FIELD_NAME.search(name))


def find_card_numbers(
    fields: Mapping[str, object],
    serializer: ContractSerializer,
    path: FieldPath = (),
    *,
    is_card: bool,
) -> Iterator[FieldPath]:
    """Yield the path of each value that may contain a card number.

    An unknown name may be one itself, so the path of its object is yielded instead. Where a card
    is expected, every text with as many digits counts, also one whose check digit is wrong.
    """
    for name, value in fields.items():
        field = serializer.fields.get(name)
        inner_path = path if field is None else (*path, name)
        if isinstance(field, ContractSerializer) and isinstance(value, Mapping):
            is_inner_card = is_card or takes_card(field)
            yield from find_card_numbers(value, field, inner_path, is_card=is_inner_card)
            continue
        text = " ".join(iterate_texts({name: value} if field is None else value))
        if isinstance(field, CardDataField):
            contains_card = bool(text.strip())
        elif not isinstance(field, DateTimeField | DoubleField) and (
            is_card or is_misspelled(name, serializer) or (field and takes_card(field))
        ):
            contains_card = has_digits_of_a_card(text)
        else:
            contains_card = contains_card_of_a_brand(text)
        if contains_card:
            yield inner_path


def iterate_texts(value: object) -> Iterator[str]:
    """Yield every text, number and name in a value."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from iterate_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iterate_texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
