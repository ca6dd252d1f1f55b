"""How fast roombook is, beside hand-written SQL without any framework: `make bench`."""
