"""Search for centers around a location."""

from datetime import datetime

from centers import geo
from tests.bench.raw.database import JSONDict, authenticate, fetch_all, get_cursor
from tests.bench.raw.rendering import CENTER, FAVORITE, USABLE, CenterParts, name_fields

TYPE_NAMES = "Id Name IsService Position Internal"
NEIGHBORHOOD_NAMES = (
    "Id OriginalName Name City State CustomTitle LandingPageContent CoworkingLandingPageContent"
)


def search(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    user, _ = authenticate(cur, data, now)
    place = geo.Coordinates(data["Latitude"], data["Longitude"])
    miles = data["RadiusInMiles"]
    box = geo.get_bounding_box(place, miles)
    x, y, z = place.vector
    chord = "((c.x - %s) * (c.x - %s) + (c.y - %s) * (c.y - %s) + (c.z - %s) * (c.z - %s))"
    vector = (x, x, y, y, z, z)
    longitudes = " OR ".join(["c.longitude BETWEEN %s AND %s"] * len(box.longitudes))
    found = fetch_all(
        cur,
        f"""SELECT {CENTER}, {FAVORITE}, {chord} AS chord, c.neighborhood_id
            FROM centers_center c
            WHERE c.is_active AND c.latitude BETWEEN %s AND %s AND ({longitudes})
              AND {chord} <= %s AND EXISTS
                (SELECT FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                 WHERE r.center_id = c.id AND r.is_active AND {USABLE})
            ORDER BY chord, c.rank, c.name_folded, c.id""",
        (
            *(user.pk, *vector, box.south, box.north),
            *(degrees for bounds in box.longitudes for degrees in bounds),
            *(*vector, geo.squared_chord_from_miles(miles)),
        ),
    )
    ids = [row[0] for row in found]
    parts = CenterParts(cur, ids[:50], root)
    centers = [
        parts.render_center(
            row, favorite=favorite, distance=round(geo.miles_from_squared_chord(squared), 2)
        )
        for *row, favorite, squared, _ in found[:50]
    ]
    types = fetch_all(
        cur,
        f"""SELECT id, name, is_service, position, internal FROM centers_resourcetype
            WHERE NOT internal AND id IN
              (SELECT r.resource_type_id FROM centers_meetingroom r
                 JOIN centers_rate t ON t.id = r.rate_id
               WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE}
               UNION SELECT resource_type_id FROM centers_service
               WHERE center_id = ANY (%s) AND is_active)
            ORDER BY position, name, id""",
        (ids, ids),
    )
    neighborhoods = fetch_all(
        cur,
        """SELECT id, original_name, name, city, state, custom_title, landing_page_content,
                  coworking_landing_page_content
           FROM centers_neighborhood WHERE id = ANY (%s) ORDER BY name, id""",
        (list({row[-1] for row in found} - {None}),),
    )
    return {
        "Centers": centers,
        "FilterOptions": {
            "RoomTypes": [name_fields(TYPE_NAMES, row) for row in types if not row[2]],
            "Services": [name_fields(TYPE_NAMES, row) for row in types if row[2]],
            "Neighborhoods": [name_fields(NEIGHBORHOOD_NAMES, row) for row in neighborhoods],
        },
    }
