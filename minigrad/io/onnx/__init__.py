"""ONNX, the format in which programs exchange models.

Both ways: `both` has a row for each operator that is one function of ours, and `layers` has larger operators.  Export:
`sizes` finds the numbers in a graph that depend on the batch, `composites` the calls of composed functions that are one
operator in ONNX, `counterparts` is the table from our primitives to ONNX nodes, `writer` and `graph` write the nodes,
and `export` makes the file.  Import: `load` reads and checks a file, and `operators` has the other operators, as our
functions.
"""
