"""How notebooks are made from their sources, and what a unit has: for authors of the course, not in the wheel."""
