"""The words of which generated names consist."""


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _split(
    """
    Aisha Alba Amir Anna Bao Bela Carla Chen Dara Diego Dina Elif Emil Erik Fatima Felix Freya
    Gita Goran Hana Hugo Ida Ines Ivan Jonas Jun Kaito Karim Kofi Lea Leo Lin Lucia Maja Marco
    Mei Mila Nadia Nils Nora Omar Oscar Pablo Petra Priya Rania Rosa Ruben Sami Sara Sofia Tariq
    Tess Theo Uma Vera Viktor Wen Yara Zoe
    """
)

LAST_NAMES = _split(
    """
    Abe Adeyemi Alonso Andersson Baker Bauer Becker Berg Bianchi Brandt Brown Carter Castillo
    Chavez Costa Dahl Diaz Dubois Egger Eriksen Evans Fischer Flores Fontana Garcia Green Gupta
    Haas Hansen Hayes Hill Hoffmann Ibrahim Ito Jansen Jensen Johnson Kaya Keller Khan Kim Klein
    Kowalski Kruger Larsen Lee Lopez Lund Martin Mendes Meyer Miller Mori Moreau Moreno Nagy
    Nakamura Nguyen Novak Okafor Olsen Park Patel Perez Petrov Popescu Quinn Ramos Reyes Ricci
    Rossi Roux Said Santos Sato Schmidt Silva Singh Smith Sousa Steiner Suzuki Tanaka Taylor
    Tran Usman Vega Virtanen Wagner Walker Wang Weber White Wong Wright Yang Yilmaz Young Zhang
    """
)

COMPANIES = _split(
    """
    Acorn Alder Anchor Beacon Birch Cedar Cobalt Copper Delta Ember Falcon Granite Harbour
    Indigo Juniper Lantern Maple Meridian North Orchard Pioneer Quarry River Saffron Summit
    Tandem Vista
    """
)

TRADES = _split(
    """
    Analytics Architects Consulting Design Energy Films Health Labs Law Media Partners
    """
)

CENTER_FIRST = _split(
    """
    Abbey Alpine Amber Arch Aurora Avenue Bay Bell Birch Bridge Canal Capitol Carlton Castle
    Central Chapel City Clock Corner Court Crescent Crown Dock East Elm Empire Exchange Fair
    Forum Foundry Fountain Garden Gate Glass Golden Grand Green Grove Harbor High Hill Ivy
    Junction King Lake Lantern Liberty Lion Loft Magnolia Main Maple Market Meridian Mill Mint
    Monument Museum North Oak Old Olive Opera Orchard Palace Park Pearl Pier Plaza Port Queen
    Quay Republic River Rose Royal Silk Silver South Spring Square Station Stone Summit Sun
    Theater Tower Town Union Union Vale Victoria View Village Wall Warehouse Water West Willow
    """
)

CENTER_SECOND = _split(
    """
    Atrium Campus Center Collective Commons Corner Court Forum Gallery Hall House Hub Lofts
    Offices Place Point Rooms Square Studios Terrace Tower Wharf Works Yard
    """
)

STREETS = _split(
    """
    Street Street Street Avenue Avenue Road Lane Boulevard Square Way
    """
)

ROOM_NAMES = _split(
    """
    Adler Alder Amazon Amber Aspen Atlas Aurora Bamboo Beech Birch Bondi Borealis Boston Bowery
    Cactus Canyon Cedar Cherry Cloud Comet Coral Cosmos Cypress Dahlia Danube Delta Dune Ebony
    Eiger Elba Elm Everest Falcon Fern Fig Fir Fjord Forest Galaxy Ganges Garnet Ginkgo Glacier
    Harbor Hazel Heron Hudson Indigo Iris Ivory Jade Jasmine Juniper Jupiter Kestrel Lagoon
    Larch Laurel Lavender Lichen Lilac Linden Lotus Lynx Mangrove Maple Mars Mercury Mesa
    Mistral Moon Nile Nova Oak Ocean Olive Onyx Opal Orchid Orion Osprey Otter Palm Pearl Pine
    Pluto Poplar Quartz Quince Raven Rhine Robin Ruby Saffron Sage Sahara Saturn Savanna Sierra
    Spruce Summit Tundra Tulip Venus Vesta Volga Walnut Willow Wren Yew Zephyr
    """
)
