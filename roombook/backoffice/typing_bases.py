"""What mixins of the back office are parts of: known to the type checker, nothing when it runs.

A mixin with one of these for its base has Django's methods, and its `super()`.
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
