"""Keeps the search columns of centers up to date when a neighborhood or a landmark changes.

A center updates its own columns when it is saved. Here, signals are used because the back office
deletes several rows with one statement, which calls no method of the rows.
"""

from collections.abc import Iterable

from django.db.models.signals import post_delete, post_save

from centers.models import Center, Landmark, Neighborhood
from roombook.db.transactions import in_transaction


@in_transaction
def refresh_search_columns(centers: Iterable[int]) -> int:
    """Update the search columns of these centers. Returns the number of centers."""
    # Locked, so that of two changes at the same time the second one sees the first.
    rows = list(Center.objects.select_for_update().filter(pk__in=centers).order_by("pk"))
    for center in rows:
        center.update_search_columns()
        # Center.save would normalize and derive again.
        super(Center, center).save(update_fields=Center.SEARCH_COLUMNS)
    return len(rows)


def connect_signals() -> None:
    post_save.connect(_on_neighborhood_saved, Neighborhood, dispatch_uid="neighborhood_changed")
    post_save.connect(_on_landmark_changed, Landmark, dispatch_uid="landmark_changed")
    post_delete.connect(_on_landmark_changed, Landmark, dispatch_uid="landmark_deleted")


def _on_neighborhood_saved(
    instance: Neighborhood, *, created: bool, raw: bool, **_: object
) -> None:
    if not (created or raw):
        refresh_search_columns(instance.centers.values_list("pk", flat=True))


def _on_landmark_changed(instance: Landmark, *, raw: bool = False, **_: object) -> None:
    if not raw:
        refresh_search_columns([instance.center_id])
