"""Types of composit, their pictures, and what else counts as a tensor.

    from composit.types import LazyTensor, visualize
    visualize(y, z, render=True)              # the graph that leads to both
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from composit import _composit
from composit._composit import Graph, LazyTensor, Node

__all__ = ["Graph", "LazyTensor", "Node", "as_lazy", "register_tensor", "visualize"]


def visualize(*tensors: LazyTensor, render: bool = False,
              file_name: str | pathlib.Path = "graph.svg", max_nodes: int = 150) -> Graph:
    """The graph of all that leads to `tensors`; a notebook draws it.

    render: write the picture into `file_name` ('x.svg', 'x.dot', or a folder of pages where the
    graph has more than `max_nodes` nodes), and show it where there is a notebook or a display."""
    graph = _composit.graph_of(list(tensors))
    if render:
        graph.visualize(pathlib.Path(file_name), max_nodes)
        _show(graph, pathlib.Path(file_name))
    return graph


def _show(graph: Graph, path: pathlib.Path) -> None:
    if _in_notebook():
        from IPython.display import display

        display(graph)
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        viewer = shutil.which("xdg-open")
        if viewer:
            subprocess.Popen([viewer, str(path)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)


def _in_notebook() -> bool:
    try:
        shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821  IPython's
    except NameError:
        return False
    return shell.has_trait("kernel")


def as_lazy(value: Any) -> LazyTensor:
    """`value` as a value of a graph: itself, a constant for what numpy.asarray takes, or what the
    library of its type registered. TypeError for anything else."""
    return LazyTensor(value)


def register_tensor(type_: type, convert: Callable[[Any], LazyTensor]) -> None:
    """Lets composit take objects of another library wherever it takes tensors."""
    _composit.converters[type_] = convert
