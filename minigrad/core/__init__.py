"""What a computation is: dtypes, errors, `Primitive`, `Node`, `Tensor`, and the one door, `emit`."""
