"""Places and the path of a search."""

PATH = "/api/locations/search"
DENVER = {"Latitude": 39.7392, "Longitude": -104.9903}
