"""What searches read of a center, kept right when its neighborhood or landmarks change.

A center sees to its own columns itself (Center.save). Signals, because the back office also deletes
many rows at once, which calls no method of theirs.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models.signals import post_delete, post_save

from centers.models import Center, Landmark, Neighborhood
from roombook.db.transactions import in_transaction


@in_transaction
def refresh_search_columns(centers: Iterable[int]) -> int:
    """Derive the search columns of these centers anew; returns how many were written."""
    # Locked, so that of two changes at once the second one sees what the first one did.
    rows = list(Center.objects.select_for_update().filter(pk__in=centers).order_by("pk"))
    for center in rows:
        center.update_search_columns()
        super(Center, center).save(update_fields=Center.SEARCH_COLUMNS)
    return len(rows)


def _on_neighborhood_saved(instance: Neighborhood, *, created: bool, raw: bool, **_: Any) -> None:
    if not (created or raw):
        refresh_search_columns(instance.centers.values_list("pk", flat=True))


def _on_landmark_changed(instance: Landmark, *, raw: bool = False, **_: Any) -> None:
    if not raw:
        refresh_search_columns([instance.center_id])


def connect_signals() -> None:
    """Once, when the app is ready."""
    post_save.connect(_on_neighborhood_saved, Neighborhood, dispatch_uid="neighborhood_changed")
    post_save.connect(_on_landmark_changed, Landmark, dispatch_uid="landmark_changed")
    post_delete.connect(_on_landmark_changed, Landmark, dispatch_uid="landmark_deleted")
