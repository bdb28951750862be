// Lines of the Python program, for the remark `source` of nodes.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/annotation_scope.h"

namespace composit::python {

namespace py = pybind11;

// The innermost line of the Python program that is not in one of the folders `hidden`,
// "model.py:12 in forward"; empty where there is none. To be called on the thread it asks about;
// takes the GIL.
std::function<std::string()> python_lines(std::vector<std::string> hidden);

// Nodes made while it exists come from the line of Python that runs. For py::call_guard.
class PythonLine {
 public:
  PythonLine();

 private:
  std::optional<Node> here_;
  std::optional<AnnotationScope> scope_;
};

// hide_lines(folders): whose files are never the line.
void add_python_lines(py::module_& module);

}  // namespace composit::python
