"""ONNX, the format in which programs exchange models.

Each operator stands in one place, both ways: how it is written from a node of ours, and which of our functions computes
it.  `elementwise` and `arrays` have those of primitives, `layers` and `whole_layers` those of composed functions, and
`operator_table` collects them; its `both` is a row for an operator that is one function of ours.

Export changes the graph step by step.  `composites` finds calls of composed functions that are one operator in ONNX;
`decompositions` puts one node in place of each, and replaces primitives that ONNX lacks; `sizes` finds the numbers that
depend on the batch; `nodes` and `writer` write the nodes; `export` makes the file.  `load` reads and checks a file, and
computes with the table.
"""
