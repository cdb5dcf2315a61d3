"""The graph: types, variables, nodes, ops, traversals. No file here imports a particular op."""
