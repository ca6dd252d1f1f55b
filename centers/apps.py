from django.apps import AppConfig


class CentersConfig(AppConfig):
    name = "centers"

    def ready(self) -> None:
        from centers import models, resources, search_index
        from centers.models import CenterImage, MeetingRoom
        from roombook import history, images

        search_index.connect()
        resources.connect()
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
