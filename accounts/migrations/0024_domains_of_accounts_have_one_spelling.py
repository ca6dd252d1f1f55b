from django.db import migrations

from accounts.models.search_text import build_search_text
from accounts.models.user import canonicalize_email


def canonicalize_addresses(apps, schema_editor):
    """Store addresses as new ones. If the mailbox has two accounts, both stay as they are."""
    users = apps.get_model("accounts", "User").objects
    for user in users.order_by("pk").iterator(chunk_size=1000):
        email = canonicalize_email(user.email)
        if email != user.email and not users.filter(email=email).exclude(pk=user.pk).exists():
            user.email = email
            users.filter(pk=user.pk).update(email=email, search_text=build_search_text(user))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0023_emails_can_have_an_attachment"),
    ]

    operations = [
        migrations.RunPython(canonicalize_addresses, migrations.RunPython.noop, elidable=True),
    ]
