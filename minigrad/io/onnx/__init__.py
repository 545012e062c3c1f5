"""ONNX, the format in which programs exchange models.

Out: `sizes` finds what of a graph depends on the batch, `fused` what is one operator there and several here,
`counterparts` is the table from our primitives to ONNX nodes, `writer` and `graph` write them, `export` puts it all
together.  In: `load` reads and judges a file, `operators` is the table from ONNX operators to our functions.
"""
