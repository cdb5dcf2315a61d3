"""The contract of an op has no more members than it needs."""

from symcomp.core.op import Op

BUILDING = {"__call__", "as_inputs", "make_node", "output_types"}
RUNNING = {"bind", "infer_shape", "perform"}
DIFFERENTIATING = {
    "connection_pattern", "no_derivative", "pullback", "pushforward", "undefined_derivatives",
}  # fmt: skip
EFFECTS = {"destroy_map", "has_effects", "moves", "view_map"}
STRUCTURE = {"inner_graphs", "inner_graphs_of", "inner_sources", "multiple_outputs"}


def test_members() -> None:
    members = {name for name in vars(Op) if not name.startswith("_")} | {"__call__"}
    assert members == BUILDING | RUNNING | DIFFERENTIATING | EFFECTS | STRUCTURE
