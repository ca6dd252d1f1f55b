from django.db import migrations


def forget_networks(apps, schema_editor):
    """Forget networks of accounts with a second factor: a password alone may have recorded them.

    The owner's network is known again after the next sign-in with a code.
    """
    networks = apps.get_model("accounts", "KnownNetwork").objects
    networks.filter(user__second_factor_since__isnull=False).delete()


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_calendars_have_addresses_and_emails_expire")]

    operations = [migrations.RunPython(forget_networks, migrations.RunPython.noop)]
