from django.apps import AppConfig


class CentersConfig(AppConfig):
    name = "centers"

    def ready(self) -> None:
        from centers import models, search_index
        from centers.models import CenterImage, MeetingRoom
        from centers.resources.centers import CenterSheet
        from centers.resources.closures import ClosureSheet
        from centers.resources.rates import RateSheet
        from centers.resources.rooms import RoomSheet
        from centers.resources.services import ServiceSheet
        from roombook import history, images
        from roombook.imports.sheet import register

        search_index.connect()
        register(CenterSheet, RateSheet, RoomSheet, ServiceSheet, ClosureSheet)
        images.delete_with(CenterImage, "image", "thumbnail")
        images.delete_with(MeetingRoom, "picture", "picture_thumbnail")
        history.keep(models.Center, leave_out=models.Center.DERIVED)
        history.keep(models.CenterImage, leave_out=("thumbnail",))
        history.keep(models.MeetingRoom, leave_out=("picture_thumbnail",))
        for each in (
            *(models.OpeningHours, models.Closure, models.Landmark, models.Neighborhood),
            *(models.ResourceType, models.Rate, models.Service),
        ):
            history.keep(each)
