"""What centers tell to whom it may concern."""

from django.dispatch import Signal

# Staff saved a closure: `closure`, and the `request` in which they did. Bookings that it touches
# are known further up only.
closure_saved = Signal()
