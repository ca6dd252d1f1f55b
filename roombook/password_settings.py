"""How passwords are hashed, and which new ones are accepted (B7.4)."""

PASSWORD_HASHERS = [
    "accounts.passwords.Argon2Hasher",
    # For passwords that were imported from another Django project.
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "first_name", "last_name", "company_name")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    # Not longer than sign-in accepts.
    {"NAME": "accounts.passwords.MaximumLengthValidator"},
]
