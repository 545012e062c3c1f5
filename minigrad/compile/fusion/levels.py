"""Levels: how often a value is computed in the rows × columns of a kernel."""

FULL, ROW, ONCE = "F", "W", "S"  # for each element, once for each row, once
ACROSS = "O"  # gathered over rows: known only when the kernel has ended, so that another one has to finish it
EVER_OFTENER = (ONCE, ROW, FULL)
