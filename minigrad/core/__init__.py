"""The representation of a computation: dtypes, `Primitive`, `Node`, `Tensor`, and `emit`, which applies a primitive."""
