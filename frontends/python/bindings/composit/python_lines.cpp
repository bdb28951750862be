#include "frontends/python/bindings/composit/python_lines.h"

#include <pybind11/stl.h>

#include <memory>
#include <unordered_map>

namespace composit::python {
namespace {

// The data of a code object. It is held, so that its address is not used again.
struct Code {
  py::object held;
  bool hidden = false;
  std::string file, function;
  std::unordered_map<int, std::string> lines = {};  // by instruction
};

class Lines {
 public:
  explicit Lines(std::vector<std::string> hidden) : hidden_(std::move(hidden)) {}

  std::string operator()() {
    if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return {};
    const py::gil_scoped_acquire gil;
    auto frame = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    while (frame) {
      auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
      if (Code& code = code_of(raw); !code.hidden) {
        std::string& line = code.lines[PyFrame_GetLasti(raw)];
        if (line.empty())
          line =
              code.file + ":" + std::to_string(PyFrame_GetLineNumber(raw)) + " in " + code.function;
        return line;
      }
      frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
    }
    return {};
  }

 private:
  Code& code_of(PyFrameObject* frame) {
    auto object =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    Code& code = codes_[object.ptr()];
    if (code.held) return code;
    const auto path = object.attr("co_filename").cast<std::string>();
    for (const std::string& folder : hidden_)
      code.hidden = code.hidden || path.compare(0, folder.size(), folder) == 0;
    code.hidden = code.hidden || path.compare(0, 7, "<frozen") == 0;
    code.file = path.substr(path.rfind('/') + 1);
    code.function = object.attr("co_qualname").cast<std::string>();
    code.held = std::move(object);
    return code;
  }

  std::vector<std::string> hidden_;
  std::unordered_map<PyObject*, Code> codes_;
};

}  // namespace

std::function<std::string()> python_lines(std::vector<std::string> hidden) {
  // A recording that outlives the call may be freed without the GIL.
  std::shared_ptr<Lines> lines(new Lines(std::move(hidden)), [](Lines* held) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    delete held;
  });
  return [lines] { return (*lines)(); };
}

namespace {

std::function<std::string()>& line_here() {
  static std::function<std::string()> function = python_lines({});
  return function;
}

}  // namespace

PythonLine::PythonLine() {
  std::string line = line_here()();
  if (line.empty()) return;
  NodeSpec spec("composit::line");
  spec.annotate("source", std::move(line));
  here_.emplace(std::move(spec));
  scope_.emplace(*here_);
}

void add_python_lines(py::module_& module) {
  module.def("hide_lines", [](std::vector<std::string> folders) {
    line_here() = python_lines(std::move(folders));
  });
}

}  // namespace composit::python
