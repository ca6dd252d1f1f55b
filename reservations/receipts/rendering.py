"""Renders a receipt or a credit note as PDF: the same row always gives the same bytes (B28.4)."""

import functools
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import cast

from django.core.files.storage import default_storage
from django.http import HttpResponse
from fontTools.ttLib import TTFont
from fpdf import FPDF
from fpdf.enums import Align, TableBordersLayout, XPos, YPos
from fpdf.fonts import FontFace

from accounts.models.outbox_message import collapse_whitespace
from reservations.models import Receipt, ReceiptType
from reservations.receipts.contents import ReceiptContent
from roombook import money

# fonts/README.md says where they come from, and under which licences.
FONTS = Path(__file__).parent / "fonts"
FAMILY = "FiraGO"
# For letters that it lacks: Chinese and Japanese, then Korean.
FALLBACK_FAMILIES = ("DroidSansFallbackFull", "NanumGothicCoding")
PLACEHOLDER = "\N{WHITE VERTICAL RECTANGLE}"
# The only format characters that change the shape of letters.
JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
# Millimeters.
MARGIN, LINE_HEIGHT, GAP = 20, 5, 6
LOGO_HEIGHT = 20
GRAY = 90


def render_receipt(receipt: Receipt) -> bytes:
    """Return the document as PDF. Its content must not have been emptied."""
    return bytes(ReceiptDocument(receipt).output())


def build_pdf_response(receipt: Receipt, *, is_download: bool) -> HttpResponse:
    """Return the PDF, for a download or for the browser to show."""
    disposition = "attachment" if is_download else "inline"
    return HttpResponse(
        render_receipt(receipt),
        "application/pdf",
        headers={
            "Content-Disposition": f'{disposition}; filename="{get_file_name(receipt)}"',
        },
    )


def get_file_name(receipt: Receipt) -> str:
    return f"{receipt.type.lower()}-{receipt.number}.pdf"


class ReceiptDocument(FPDF):
    """The PDF of one receipt: the seller, the buyer, the lines, the tax and the payments."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(format="A4")
        self.oversized_images = "DOWNSCALE"
        self.receipt = receipt
        self.texts, families, self.missing_letters = prepare_texts(receipt.content)
        self.set_margin(MARGIN)
        self.set_auto_page_break(auto=True, margin=MARGIN + LINE_HEIGHT)
        # It is part of the file, and otherwise the time of the rendering.
        self.set_creation_date(receipt.issued_at)
        self.set_title(str(receipt))
        self.set_lang("en")
        self.add_font(FAMILY, "", FONTS / "FiraGO-Regular.ttf")
        self.add_font(FAMILY, "B", FONTS / "FiraGO-Bold.ttf")
        for family in families:
            self.add_font(family, "", FONTS / f"{family}.ttf")
        self.set_fallback_fonts(families, exact_match=False)
        self.set_text_shaping(use_shaping_engine=True)
        self.add_page()
        self.add_head()
        self.add_lines()
        self.add_taxes_and_payments()
        self.add_notes()

    def footer(self) -> None:
        """Write the number of the document and the page at the bottom of each page."""
        self.set_y(-MARGIN)
        self.set_font(FAMILY, size=8)
        self.set_text_color(GRAY)
        self.cell(0, LINE_HEIGHT, f"{self.receipt}, page {self.page_no()}", align=Align.R)
        self.set_text_color(0)

    def add_text(self, text: str, *, style: str = "", size: float = 10, color: int = 0) -> None:
        """Write a paragraph."""
        self.set_font(FAMILY, style, size)
        self.set_text_color(color)
        self.multi_cell(0, size / 2, text, align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self.set_text_color(0)

    def add_table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> None:
        """Write a table; its columns are amounts, but for the first."""
        self.set_font(FAMILY, size=9)
        with self.table(
            col_widths=widths,
            text_align=(Align.L, *[Align.R] * (len(widths) - 1)),
            borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            headings_style=FontFace(emphasis="BOLD"),
            line_height=LINE_HEIGHT,
            padding=1,
        ) as table:
            for cells in (head, *rows):
                row = table.row()
                for cell in cells:
                    row.cell(cell)
        self.ln(GAP)

    def add_head(self) -> None:
        """Write the seller, the number, the date, the booking and the buyer."""
        if logo := self.receipt.content.get("logo"):
            # Without its file, as after a restore without the pictures, the texts still say it all.
            with suppress(FileNotFoundError), default_storage.open(logo) as file:
                self.image(file.read(), w=self.epw, h=LOGO_HEIGHT, keep_aspect_ratio=True)
                self.ln(GAP)
        name, *details = self.texts["seller"]
        self.add_text(name, style="B", size=12)
        for line in details:
            self.add_text(line, size=9)
        self.ln(GAP)
        self.add_text(str(self.receipt), style="B", size=18)
        self.ln(GAP / 2)
        self.add_text(f"Issued on {self.texts['date']}")
        self.add_text(self.texts["booking"])
        if self.texts["credited"]:
            self.add_text(f"Takes back a part of: {', '.join(self.texts['credited'])}")
        self.ln(GAP / 2)
        self.add_text("For", size=9, color=GRAY)
        for line in self.texts["buyer"]:
            self.add_text(line)
        self.ln(GAP)

    def add_lines(self) -> None:
        """Write the lines and the total."""
        total = ("Total", "", self.texts["total"])
        self.add_table(("Item", "Rate", "Amount"), [*self.texts["lines"], total], (56, 26, 18))

    def add_taxes_and_payments(self) -> None:
        """Write which taxes the total contains, and how it was paid or refunded."""
        taxes = [
            (label, self._format_amount(net), self._format_amount(tax))
            for label, net, tax in self.texts["taxes"]
        ]
        self.add_table(("The total contains", "Net", "Tax"), taxes, (64, 18, 18))
        if self.texts["payments"]:
            verb = "Paid" if self.receipt.type == ReceiptType.RECEIPT else "Refunded"
            self.add_table((verb, "Amount"), self.texts["payments"], (82, 18))

    def add_notes(self) -> None:
        """Write that no money was moved, and which letters are missing, if any."""
        if self.texts["is_test"]:
            self.add_text("Test: no money was moved.", style="B")
        if self.missing_letters:
            codes = ", ".join(f"U+{ord(letter):04X}" for letter in self.missing_letters)
            text = f"{PLACEHOLDER} stands for letters that this document cannot show: {codes}."
            self.add_text(text, size=8)

    def _format_amount(self, amount: str) -> str:
        return collapse_whitespace(money.format_amount(Decimal(amount), self.receipt.currency))


def prepare_texts(content: ReceiptContent) -> tuple[ReceiptContent, list[str], list[str]]:
    """Return the texts as they are written, the fallback fonts for them, and missing letters.

    Each text is on one line. Letters that no font has are replaced by PLACEHOLDER, never by other
    letters: a name stays as it is, or is visibly incomplete.
    """
    families: dict[str, None] = {}
    missing: dict[str, None] = {}

    def prepare(value: object) -> object:
        if isinstance(value, dict):
            return {name: prepare(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [prepare(each) for each in value]
        if not isinstance(value, str):
            return value
        letters = []
        for letter in collapse_whitespace(value):
            if unicodedata.category(letter) == "Cf" and letter not in JOINERS:
                # It has no shape, and could reverse the text.
                continue
            family = find_family(letter)
            if family is None:
                missing[letter] = None
            elif family != FAMILY:
                families[family] = None
            letters.append(letter if family else PLACEHOLDER)
        return "".join(letters)

    return cast("ReceiptContent", prepare(content)), list(families), list(missing)


@functools.lru_cache(4096)
def find_family(letter: str) -> str | None:
    """Return the first font that has the letter."""
    if ord(letter) in load_letters("FiraGO-Regular"):
        return FAMILY
    for family in FALLBACK_FAMILIES:
        if ord(letter) in load_letters(family):
            return family
    return None


@functools.cache
def load_letters(name: str) -> frozenset[int]:
    """Return the code points of a font's letters."""
    with TTFont(FONTS / f"{name}.ttf", lazy=True) as font:
        return frozenset(font.getBestCmap())
