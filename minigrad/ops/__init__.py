"""The primitives, a file per family, and what is composed from them."""
