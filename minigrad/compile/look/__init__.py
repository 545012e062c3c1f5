"""Looking into a program: values of nodes, costs, the roofline, and the comparison with eager mode."""
