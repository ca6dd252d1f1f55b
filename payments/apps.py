from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        from accounts import erasure
        from payments import saved_cards

        erasure.external_deletions.append(saved_cards.delete_cards_of_erased_account)
