from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.models import Group

        from accounts.models import CenterRole, User
        from roombook.backoffice import audit_log

        audit_log.register(
            User,
            excluded_fields=(
                "password",
                "last_login",
                "date_joined",
                "thumbnail",
                "search_text",
                "second_factor_since",
                "second_factor_changed_at",
            ),
            hidden_fields=("email", "first_name", "last_name", "company_name", "phone_number"),
            many_to_many_fields=("groups", "user_permissions"),
            named_by_id=True,
        )
        audit_log.register(CenterRole)
        audit_log.register(Group, many_to_many_fields=("permissions",))
