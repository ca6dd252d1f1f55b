from django.apps import AppConfig


class CentersConfig(AppConfig):
    name = "centers"

    def ready(self) -> None:
        from centers import models
        from centers.models import CenterImage, MeetingRoom
        from centers.resources.centers import CenterSheet
        from centers.resources.closures import ClosureSheet
        from centers.resources.rates import RateSheet
        from centers.resources.rooms import RoomSheet
        from centers.resources.services import ServiceSheet
        from centers.search import index
        from roombook import images
        from roombook.backoffice import audit_log
        from roombook.imports.sheet import register

        index.connect()
        register(CenterSheet, RateSheet, RoomSheet, ServiceSheet, ClosureSheet)
        images.delete_with(CenterImage, "image", "thumbnail")
        images.delete_with(MeetingRoom, "picture", "picture_thumbnail")
        audit_log.keep(models.Center, leave_out=models.Center.DERIVED)
        audit_log.keep(models.CenterImage, leave_out=("thumbnail",))
        audit_log.keep(models.MeetingRoom, leave_out=("picture_thumbnail",))
        for each in (
            *(models.OpeningHours, models.Closure, models.Landmark, models.Neighborhood),
            *(models.ResourceType, models.Rate, models.Service),
        ):
            audit_log.keep(each)
