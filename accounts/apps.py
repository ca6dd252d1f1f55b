from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.models import Group

        from accounts.models import CenterRole, User
        from roombook.backoffice import audit_log

        audit_log.keep(
            User,
            leave_out=("password", "last_login", "date_joined", "thumbnail"),
            hide=("email", "first_name", "last_name", "company_name", "phone_number"),
            many=("groups", "user_permissions"),
            by_number=True,
        )
        audit_log.keep(CenterRole)
        audit_log.keep(Group, many=("permissions",))
