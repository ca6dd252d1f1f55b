"""Pictures for the demo, drawn from a name: small, and the same every time."""

from io import BytesIO
from random import Random

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 720, 450
# Drawn larger and scaled down, which smooths edges.
SCALE = 2

Color = tuple[int, int, int]

# Sky above, sky below, sun, the nearest houses.
SKIES: tuple[tuple[Color, Color, Color, Color], ...] = (
    ((94, 144, 190), (232, 214, 190), (255, 240, 205), (44, 62, 80)),
    ((58, 68, 120), (240, 160, 130), (255, 214, 150), (40, 36, 66)),
    ((120, 176, 210), (236, 242, 244), (255, 252, 236), (62, 84, 100)),
    ((24, 34, 70), (96, 90, 140), (240, 236, 214), (16, 20, 40)),
    ((150, 190, 196), (250, 226, 190), (255, 236, 190), (70, 84, 84)),
)
# Wall, floor, table, seats.
INTERIORS: tuple[tuple[Color, Color, Color, Color], ...] = (
    ((236, 232, 224), (176, 150, 122), (120, 84, 56), (56, 72, 90)),
    ((214, 224, 226), (120, 126, 130), (230, 226, 218), (42, 98, 104)),
    ((226, 216, 204), (140, 116, 96), (70, 58, 52), (164, 84, 62)),
    ((228, 230, 222), (168, 160, 146), (196, 164, 120), (88, 108, 76)),
)


def draw_city(name: str) -> bytes:
    """The skyline of a city, as a JPEG."""
    return _to_jpeg(_draw_skyline(Random(name)))


def draw_room(name: str, seats: int) -> bytes:
    """A room with a window, a table and as many chairs as fit, as a JPEG."""
    random = Random(name)
    wall, floor, table, seat = random.choice(INTERIORS)
    w, h = WIDTH * SCALE, HEIGHT * SCALE
    picture = Image.new("RGB", (w, h), wall)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, int(h * 0.62), w, h), fill=floor)
    draw.rectangle((0, int(h * 0.61), w, int(h * 0.62)), fill=_darken(wall))
    window = (int(w * 0.07), int(h * 0.12), int(w * 0.47), int(h * 0.5))
    view = _draw_skyline(random).resize((window[2] - window[0], window[3] - window[1]))
    picture.paste(view, window[:2])
    draw.rectangle(window, outline=(250, 250, 248), width=12)
    draw.rounded_rectangle((w * 0.58, h * 0.16, w * 0.86, h * 0.44), 12, fill=(34, 38, 44))
    chairs = min(max(seats // 2, 1), 7)
    half = w * (0.14 + 0.035 * chairs)
    left, top, bottom = w / 2 - half, h * 0.66, h * 0.78
    places = [left + 2 * half * (2 * chair + 1) / (2 * chairs) for chair in range(chairs)]
    for x in places:
        draw.rounded_rectangle((x - 34, top - 74, x + 34, top + 10), 16, fill=_darken(seat))
    corners = [(left * 1.1, top), (w - left * 1.1, top), (w - left, bottom), (left, bottom)]
    draw.polygon(corners, fill=table)
    draw.rectangle((left, bottom, w - left, bottom + 16), fill=_darken(table))
    for x in places:
        draw.rounded_rectangle((x - 42, bottom - 34, x + 42, h * 0.9), 20, fill=seat)
    return _to_jpeg(picture)


def _draw_skyline(random: Random) -> Image.Image:
    above, below, sun, near = random.choice(SKIES)
    sky = Image.new("RGB", (1, 64))
    sky.putdata([_mix(above, below, row / 63) for row in range(64)])
    w, h = WIDTH * SCALE, HEIGHT * SCALE
    picture = sky.resize((w, h), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(picture)
    x = w * (0.15 + 0.7 * random.random())
    draw.ellipse((x - h / 13, h * 0.26, x + h / 13, h * 0.42), fill=sun)
    for distance in (3, 2, 1):
        color = _mix(near, below, (distance - 1) / 3)
        left = -20.0
        while left < w:
            width = w * (0.05 + 0.07 * random.random())
            height = h * (0.3 + 0.08 * distance + 0.2 * random.random())
            draw.rectangle((left, h - height, left + width, h), fill=color)
            left += width + w * 0.02 * random.random()
    return picture


def _mix(one: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _darken(color: Color) -> Color:
    return _mix(color, (0, 0, 0), 0.22)


def _to_jpeg(picture: Image.Image) -> bytes:
    content = BytesIO()
    picture.reduce(SCALE).save(content, "JPEG", quality=92)
    return content.getvalue()
