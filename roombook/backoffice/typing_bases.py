"""Base classes of mixins, for the type checker only.

A mixin that inherits from one of these has Django's methods, and its ``super()``, when it is
checked; at run time it inherits from ``object``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.contrib.admin.options import BaseModelAdmin, InlineModelAdmin

    AnyAdminBase = BaseModelAdmin[Any]
    ModelAdminBase = ModelAdmin[Any]
    InlineAdminBase = InlineModelAdmin[Any, Any]
else:
    AnyAdminBase = ModelAdminBase = InlineAdminBase = object
