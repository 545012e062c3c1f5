"""Views that more than one unit shows."""
