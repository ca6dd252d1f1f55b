from django.apps import AppConfig


class CentersConfig(AppConfig):
    name = "centers"

    def ready(self) -> None:
        from centers import search_index
        from centers.models import CenterImage, MeetingRoom
        from roombook import images

        search_index.connect()
        images.delete_with(CenterImage, "image", "thumbnail")
        images.delete_with(MeetingRoom, "picture", "picture_thumbnail")
