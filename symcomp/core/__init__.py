"""The graph: types, variables, nodes, ops, traversals. Knows nothing of any particular op."""
