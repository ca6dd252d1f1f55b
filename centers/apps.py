from django.apps import AppConfig


class CentersConfig(AppConfig):
    name = "centers"

    def ready(self) -> None:
        from centers import models, search_index
        from centers.models import CenterImage, MeetingRoom
        from centers.resources import (
            CenterResource,
            ClosureResource,
            PriceListResource,
            RateResource,
            RoomResource,
            ServiceResource,
            TermsResource,
            TypeResource,
        )
        from roombook import images
        from roombook.backoffice import audit_log
        from roombook.imports.resources import register

        search_index.connect_signals()
        # In the order in which an empty database takes their templates.
        register(TypeResource, CenterResource, TermsResource, RateResource, PriceListResource)
        register(RoomResource, ServiceResource, ClosureResource)
        images.delete_files_with_row(CenterImage, "image", "thumbnail")
        images.delete_files_with_row(MeetingRoom, "picture", "picture_thumbnail")
        audit_log.register(
            models.Center,
            excluded_fields=(*models.Center.SEARCH_COLUMNS, *models.Center.CHANGE_COLUMNS),
        )
        audit_log.register(models.CenterImage, excluded_fields=("thumbnail",))
        audit_log.register(models.MeetingRoom, excluded_fields=("picture_thumbnail",))
        for each in (
            *(models.OpeningHours, models.Closure, models.Landmark, models.Neighborhood),
            *(models.ResourceType, models.Rate, models.PriceList, models.Service),
            models.Terms,
        ):
            audit_log.register(each)
