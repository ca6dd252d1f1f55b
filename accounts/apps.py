from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.models import Group

        from accounts.models import CenterRole, User
        from roombook import history

        history.keep(
            User,
            leave_out=("password", "last_login", "date_joined", "thumbnail"),
            hide=("email", "first_name", "last_name", "company_name", "phone_number"),
            many=("groups", "user_permissions"),
            by_number=True,
        )
        history.keep(CenterRole)
        history.keep(Group, many=("permissions",))
