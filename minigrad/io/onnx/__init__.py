"""ONNX, the format in which programs exchange models.

Export: `sizes` finds the numbers in a graph that depend on the batch, `composites` the calls of composed functions that
are one operator in ONNX, `counterparts` is the table from our primitives to ONNX nodes, `writer` and `graph` write the
nodes, and `export` makes the file.  Import: `load` reads and checks a file, and `operators` is the table from ONNX's
operators to our functions.  `layers` has larger operators, both ways.
"""
