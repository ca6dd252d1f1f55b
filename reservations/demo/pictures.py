"""Pictures for the demo, drawn from a name: small, and the same every time."""

from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from random import Random

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 720, 450
# Drawn larger and scaled down: slanted edges come out smooth.
SCALE = 2

Color = tuple[int, int, int]

# Sky above, sky below, sun, the nearest houses.
SKIES: Sequence[tuple[Color, Color, Color, Color]] = (
    ((94, 144, 190), (232, 214, 190), (255, 240, 205), (44, 62, 80)),
    ((58, 68, 120), (240, 160, 130), (255, 214, 150), (40, 36, 66)),
    ((120, 176, 210), (236, 242, 244), (255, 252, 236), (62, 84, 100)),
    ((24, 34, 70), (96, 90, 140), (240, 236, 214), (16, 20, 40)),
    ((150, 190, 196), (250, 226, 190), (255, 236, 190), (70, 84, 84)),
)
# Wall, floor, table, seats.
INTERIORS: Sequence[tuple[Color, Color, Color, Color]] = (
    ((236, 232, 224), (176, 150, 122), (120, 84, 56), (56, 72, 90)),
    ((214, 224, 226), (120, 126, 130), (230, 226, 218), (42, 98, 104)),
    ((226, 216, 204), (140, 116, 96), (70, 58, 52), (164, 84, 62)),
    ((228, 230, 222), (168, 160, 146), (196, 164, 120), (88, 108, 76)),
)


def outside(name: str) -> bytes:
    """The view of a city from somewhere high, as a JPEG."""
    random = Random(name)
    sky, haze, sun, near = random.choice(SKIES)
    picture = _gradient(sky, haze)
    draw = ImageDraw.Draw(picture)
    width, height = picture.size
    x, y, r = int(width * (0.15 + 0.7 * random.random())), int(height * 0.34), height // 13
    draw.ellipse((x - r, y - r, x + r, y + r), fill=sun)
    for layer in range(3):
        strength = (layer + 1) / 3
        _houses(draw, random, _between(haze, near, strength), strength, picture.size)
    draw.rectangle((0, int(height * 0.95), width, height), fill=_between(near, (0, 0, 0), 0.3))
    return _jpeg(picture)


def inside(name: str, seats: int) -> bytes:
    """A room with a table, as many chairs as fit, a window and a screen, as a JPEG."""
    random = Random(name)
    wall, floor, table, seat = random.choice(INTERIORS)
    picture = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), wall)
    draw = ImageDraw.Draw(picture)
    w, h = picture.size
    ground = int(h * 0.62)
    draw.rectangle((0, ground, w, h), fill=floor)
    for board in range(-6, 16):  # boards run towards the far wall
        draw.line((board * w // 10, h, w // 2 + (board - 5) * w // 30, ground), _darker(floor), 3)
    draw.rectangle((0, ground - 10, w, ground), fill=_darker(wall))
    _window(picture, random, (int(w * 0.07), int(h * 0.12), int(w * 0.47), int(h * 0.5)))
    _screen(draw, (int(w * 0.58), int(h * 0.16), int(w * 0.86), int(h * 0.44)), seat)
    _lamps(draw, w, h, 2 if seats < 10 else 3)
    _table(draw, w, h, table, seat, min(max(seats // 2, 1), 7))
    _plant(draw, int(w * 0.945), ground + int(h * 0.09), h)
    return _jpeg(picture)


def _houses(
    draw: ImageDraw.ImageDraw,
    random: Random,
    color: Color,
    strength: float,
    size: tuple[int, int],
) -> None:
    width, height = size
    glass = _between(color, (255, 236, 180), 0.25 + 0.3 * strength)
    left = -20
    while left < width:
        wide = int(width * (0.05 + 0.07 * random.random()))
        tall = int(height * (0.62 - 0.16 * strength + 0.26 * random.random() - 0.12))
        draw.rectangle((left, height - tall, left + wide, height), fill=color)
        if random.random() < 0.25:  # a mast on the roof
            middle = left + wide // 2
            draw.line((middle, height - tall - height // 14, middle, height - tall), color, 4)
        if strength > 0.5:
            for row in range(height - tall + 20, height - 30, 34):
                for column in range(left + 12, left + wide - 18, 26):
                    if random.random() < 0.4:
                        draw.rectangle((column, row, column + 11, row + 16), fill=glass)
        left += wide + int(width * 0.008 * random.random() * 3)


def _window(picture: Image.Image, random: Random, box: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = box
    view = Image.open(BytesIO(_view(random.randrange(len(SKIES)))))
    picture.paste(view.resize((right - left, bottom - top)), (left, top))
    draw = ImageDraw.Draw(picture)
    draw.rectangle(box, outline=(250, 250, 248), width=12)
    for part in (1, 2):
        x = left + (right - left) * part // 3
        draw.line((x, top, x, bottom), (250, 250, 248), 9)
    draw.rectangle((left - 14, bottom, right + 14, bottom + 14), fill=(244, 242, 238))


@lru_cache(maxsize=8)
def _view(number: int) -> bytes:
    return outside(f"window {number}")


def _screen(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], accent: Color) -> None:
    left, top, right, bottom = box
    draw.rounded_rectangle(box, 12, fill=(34, 38, 44))
    draw.rectangle((left + 12, top + 12, right - 12, bottom - 12), fill=(232, 238, 242))
    wide, tall = right - left, bottom - top
    for bar, share in enumerate((0.3, 0.45, 0.38, 0.62)):
        x = left + wide * (bar + 1) // 6
        draw.rectangle(
            (x, bottom - 30 - int(tall * share), x + wide // 10, bottom - 30),
            fill=_between(accent, (255, 255, 255), 0.15 * bar),
        )


def _lamps(draw: ImageDraw.ImageDraw, w: int, h: int, count: int) -> None:
    for lamp in range(count):
        x = w * (lamp + 1) // (count + 1)
        draw.line((x, 0, x, int(h * 0.06)), (70, 70, 70), 4)
        draw.pieslice((x - 46, int(h * 0.045), x + 46, int(h * 0.145)), 180, 360, fill=(64, 66, 70))
        draw.ellipse((x - 16, int(h * 0.085), x + 16, int(h * 0.11)), fill=(255, 240, 200))


def _table(
    draw: ImageDraw.ImageDraw, w: int, h: int, table: Color, seat: Color, a_side: int
) -> None:
    top, bottom = int(h * 0.66), int(h * 0.78)
    reach = 0.14 + 0.035 * a_side
    near_left, near_right = int(w * (0.5 - reach)), int(w * (0.5 + reach))
    far_left, far_right = int(w * (0.5 - reach * 0.82)), int(w * (0.5 + reach * 0.82))
    for chair in range(a_side):  # behind the table
        x = far_left + (far_right - far_left) * (2 * chair + 1) // (2 * a_side)
        draw.rounded_rectangle((x - 34, top - 74, x + 34, top + 10), 16, fill=_darker(seat))
    draw.polygon(
        [(far_left, top), (far_right, top), (near_right, bottom), (near_left, bottom)], fill=table
    )
    draw.rectangle((near_left, bottom, near_right, bottom + 16), fill=_darker(table))
    for leg in (near_left + 40, near_right - 56):
        draw.rectangle((leg, bottom + 16, leg + 16, int(h * 0.92)), fill=_darker(_darker(table)))
    for chair in range(a_side):  # before it
        x = near_left + (near_right - near_left) * (2 * chair + 1) // (2 * a_side)
        draw.line((x, int(h * 0.88), x, int(h * 0.95)), (60, 60, 60), 8)
        draw.line((x - 30, int(h * 0.955), x + 30, int(h * 0.955)), (60, 60, 60), 8)
        draw.rounded_rectangle((x - 42, bottom - 34, x + 42, int(h * 0.89)), 20, fill=seat)


def _plant(draw: ImageDraw.ImageDraw, x: int, y: int, h: int) -> None:
    green = (78, 122, 84)
    for lean, tall in ((-60, 0.16), (-26, 0.22), (14, 0.24), (52, 0.17)):
        tip = (x + lean, y - 40 - int(h * tall))
        draw.polygon([(x - 12, y - 30), tip, (x + 12, y - 30)], fill=green)
        green = _between(green, (140, 180, 120), 0.25)
    draw.polygon([(x - 44, y - 40), (x + 44, y - 40), (x + 32, y + 50), (x - 32, y + 50)], "white")


def _gradient(above: Color, below: Color) -> Image.Image:
    column = Image.new("RGB", (1, 64))
    column.putdata([_between(above, below, row / 63) for row in range(64)])
    return column.resize((WIDTH * SCALE, HEIGHT * SCALE), Image.Resampling.BILINEAR)


def _between(one: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _darker(color: Color) -> Color:
    return _between(color, (0, 0, 0), 0.22)


def _jpeg(picture: Image.Image) -> bytes:
    written = BytesIO()
    picture.reduce(SCALE).save(written, "JPEG", quality=92)
    return written.getvalue()
