"""Text that people write: how it is stored, and when two names are the same one."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from django.db import models

OTHER_LINE_BREAK = re.compile("[\x0b\x0c\x85\u2028\u2029]")
# Control characters without tabs and line breaks, half surrogate pairs, and what Unicode calls
# noncharacters. Most file formats, XML among them, cannot hold them.
NONCHARACTERS = "".join(chr(last) + chr(last + 1) for last in range(0xFFFE, 0x110000, 0x10000))
CONTROL = re.compile(
    rf"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{NONCHARACTERS}]"
)
# Soft hyphens, zero-width spaces, and marks of direction. The joiners are not among them, because
# emoji and words in Persian and Indic scripts need them.
INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
# What makes no other name: Unicode's Default_Ignorable_Code_Point.
IGNORED = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
# What keyboards and word processors write for one another.
SAME_LETTERS = str.maketrans("ı’‘‐‑–—−", "i''-----")  # noqa: RUF001


def remove_controls(text: str) -> str:
    return CONTROL.sub("", text)


def clean_text(text: str) -> str:
    """The text without outer spaces, and without control characters but tabs and line breaks."""
    return remove_controls(OTHER_LINE_BREAK.sub("\n", text)).strip()


def clean_line(text: str) -> str:
    """The text in one line, composed (NFC), with single spaces, without invisible characters."""
    visible = INVISIBLE.sub("", clean_text(text))
    return " ".join(unicodedata.normalize("NFC", visible).split())


def fold_name(text: str) -> str:
    """A name for comparison: however it is typed, in any case; accents matter.

    Places are compared without accents too: `places.fold_text`.
    """
    folded = unicodedata.normalize("NFKC", IGNORED.sub("", clean_text(text))).casefold()
    # The dot of a Turkish İ is a mark of its own when the letter is in lower case.
    folded = unicodedata.normalize("NFKC", folded).replace("i\u0307", "i")
    return " ".join(folded.translate(SAME_LETTERS).split())


class CleanedMixin(models.Field):
    """A column that cleans its text when it is validated, saved and looked up."""

    clean_value: Callable[[str], str]

    def to_python(self, value: Any) -> Any:
        return self.clean_value(value) if isinstance(value, str) else super().to_python(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001
        value = super().pre_save(model_instance, add)
        if isinstance(value, str):
            # The instance has what is stored.
            value = self.clean_value(value)
            setattr(model_instance, self.attname, value)
        return value

    def deconstruct(self) -> Any:
        """For migrations it is Django's own field: the columns are the same."""
        name, _, args, kwargs = super().deconstruct()
        own = next(each for each in type(self).__mro__ if each.__module__.startswith("django."))
        return name, f"django.db.models.{own.__name__}", args, kwargs


class LineField(CleanedMixin, models.CharField):
    """A text of one line, such as a name."""

    clean_value = staticmethod(clean_line)


class ParagraphsField(CleanedMixin, models.TextField):
    """A text that may have several lines."""

    clean_value = staticmethod(clean_text)
