"""Demo data: a small world to try the service in. `seed_demo` makes it; nothing else reads it."""
