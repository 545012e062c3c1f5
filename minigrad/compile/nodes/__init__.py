"""Nodes as the compiler uses them: graphs, views of memory, and the interpreter that runs a graph node by node."""
