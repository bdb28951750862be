"""Graphs of tensor operations: built, printed, drawn, rewritten, evaluated. Needs no torch.

    import composit
    graph = composit.parse(open("graph.txt").read())
    print(len(graph), graph.run_passes("canonicalize,drop_no_ops"))
    graph.visualize("graph.svg")
"""

from composit._composit import Error, Graph, InternalError, LazyTensor, Node, parse, pass_names

__all__ = ["Error", "Graph", "InternalError", "LazyTensor", "Node", "parse", "pass_names"]
