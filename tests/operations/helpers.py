"""Helpers for tests of single operations."""


def refused(response, status, code):
    """Check the envelope of an error, and return the error."""
    error = response.json()["Error"]
    assert (response.status_code, error["Summary"]) == (status, code)
    assert response.json() == {"Success": False, "Error": error}
    return error
