// _conformance: what tests/conformance needs of C++: the tolerances of all tests, and compilation
// of many graphs at once.
#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "flashlight/capture.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/backend.h"
#include "tests/ops/known_differences.h"
#include "tracer/convert.h"

namespace flashlight::conformance {
namespace {

namespace py = pybind11;
using composit::Array;
using composit::Backend;
using composit::Compiled;
using composit::Graph;
using composit::UserError;
using composit::test::What;

What what_of(const std::string& text) {
  if (text == "value") return What::value;
  if (text == "derivative") return What::derivative;
  throw UserError("expected 'value' or 'derivative', received '" + text + "'");
}

// The widest of the tolerances that `ops`, which the values went through, are granted; empty where
// the tensors agree.
std::string difference(const std::vector<std::string>& ops, const std::string& what,
                       const at::Tensor& ours, const at::Tensor& expected, double times) {
  const Array mine = tracer::to_array(ours), torch = tracer::to_array(expected);
  const composit::DType dtype = torch.type().dtype;
  composit::test::Tolerance allowed = composit::test::tolerance_of(dtype);
  for (const std::string& op : ops) {
    const auto [relative, absolute] = composit::test::torch_tolerance(op, what_of(what), dtype);
    allowed.relative = std::max(allowed.relative, relative);
    allowed.absolute = std::max(allowed.absolute, absolute);
  }
  return composit::test::difference(mine, torch,
                                    {times * allowed.relative, times * allowed.absolute});
}

// "right", "differs" or "fails", and why (tests/ops/known_differences.h).
std::pair<std::string, std::string> verdict(const std::vector<std::string>& ops,
                                            const std::string& what, const std::string& wrong) {
  for (const std::string& op : ops)
    if (const auto* known = composit::test::known_difference(op, what_of(what), wrong))
      return {known->verdict == composit::test::Verdict::right ? "right" : "differs",
              std::string(known->why)};
  return {"fails", ""};
}

// ---- compilation --------------------------------------------------------------------------------

// Code that is compiled already, for any graph.
class Precompiled : public Backend {
 public:
  explicit Precompiled(Compiled compiled) : compiled_(std::move(compiled)) {}
  std::string name() const override { return "precompiled"; }

 protected:
  Compiled make(const Graph& /*graph*/,
                const composit::CompileOptions& /*options*/) const override {
    return compiled_;
  }

 private:
  Compiled compiled_;
};

std::string name_of(size_t number) { return "program_" + std::to_string(number); }

std::vector<Compiled> compile_cpp(const std::vector<Graph>& graphs,
                                  const std::vector<std::string>& flags) {
  std::vector<std::string> names;
  for (size_t i = 0; i < graphs.size(); ++i) names.push_back(name_of(i));
  return cpp::compile(graphs, names, {.flags = flags});
}

std::vector<Compiled> compile_mosaic(const std::vector<Graph>& graphs,
                                     const std::vector<std::string>& flags) {
  std::vector<mosaic::Plan> plans;
  for (size_t i = 0; i < graphs.size(); ++i)
    plans.push_back(mosaic::plan_of(graphs[i], {.name = name_of(i)}));
  std::vector<Compiled> compiled = mosaic::compile(std::move(plans), 1, flags);
  for (size_t i = 0; i < graphs.size(); ++i)  // weights come with each call
    compiled[i] = composit::code_of(graphs[i], name_of(i),
                                    [one = compiled[i]](const std::vector<Array>& inputs) {
                                      return Compiled(one->prepare(inputs))(inputs);
                                    });
  return compiled;
}

// Several graphs by one call of the compiler. A graph that the backend or the compiler refuses has
// a reason instead of a function.
class Batch {
 public:
  Batch(std::vector<CaptureBase> captures, std::string backend, std::vector<std::string> flags)
      : captures_(std::move(captures)),
        backend_(std::move(backend)),
        flags_(std::move(flags)),
        functions_(captures_.size()),
        refused_(captures_.size()) {
    std::vector<size_t> accepted;
    for (size_t i = 0; i < captures_.size(); ++i)
      if (accepts(i, [&] {
            backend_named(backend_).source(captures_[i].graph(), {.may_prepare = true});
          }))
        accepted.push_back(i);
    try {
      compile(accepted);
    } catch (const UserError&) {  // by the compiler, which does not say of which
      for (const size_t i : accepted) accepts(i, [&] { compile({i}); });
    }
  }

  const std::vector<std::string>& refused() const { return refused_; }
  std::vector<at::Tensor> run(size_t number, const std::vector<at::Tensor>& arguments) const {
    return captures_.at(number).evaluate(arguments, Precompiled(functions_.at(number)));
  }

 private:
  template <class Function>
  bool accepts(size_t number, Function function) {
    try {
      function();
      return true;
    } catch (const std::exception& error) {
      refused_[number] = error.what();
      return false;
    }
  }

  void compile(const std::vector<size_t>& numbers) {
    if (numbers.empty()) return;
    std::vector<Graph> graphs;
    for (const size_t i : numbers) graphs.push_back(captures_[i].graph());
    const std::vector<Compiled> functions =
        backend_ == "cpp" ? compile_cpp(graphs, flags_) : compile_mosaic(graphs, flags_);
    for (size_t i = 0; i < numbers.size(); ++i) functions_[numbers[i]] = functions[i];
  }

  std::vector<CaptureBase> captures_;
  std::string backend_;
  std::vector<std::string> flags_;
  std::vector<Compiled> functions_;
  std::vector<std::string> refused_;
};

}  // namespace
}  // namespace flashlight::conformance

PYBIND11_MODULE(_conformance, module) {
  using namespace flashlight::conformance;
  py::module_::import("flashlight");
  module.def("difference", &difference);
  module.def("verdict", &verdict);
  py::class_<Batch>(module, "Batch")
      .def(py::init<std::vector<flashlight::CaptureBase>, std::string, std::vector<std::string>>(),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("refused", &Batch::refused)
      .def("run", &Batch::run, py::call_guard<py::gil_scoped_release>());
}
