// Functions of Python as nodes: traced into a call, or called when the graph is evaluated.
#include "composit/numpy/operation.h"

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/tracing.h"
#include "composit/passes/inline_calls.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/evaluate.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {
namespace {

using namespace py::literals;
using Arrays = std::vector<Array>;

// `function` of a list of tensors, which gives a list of them, as one node `composit::call`.
NdArrays call_traced(const std::string& name, const py::function& function,
                     const NdArrays& arguments) {
  std::vector<Type> types;
  for (const NdArray& argument : arguments) types.push_back(argument.type());
  const Traced traced(types, [&](const LazyTensors& blocks) {
    const auto results = function(NdArrays(blocks.begin(), blocks.end())).cast<NdArrays>();
    return LazyTensors(results.begin(), results.end());
  });
  const Closed closed = close({traced});
  LazyTensors operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), closed.outside.begin(), closed.outside.end());
  const LazyTensors results = call_region_as_node(name, closed.regions[0], operands);
  return {results.begin(), results.end()};
}

// A function of a list of numpy.ndarray that gives a list of them.
class PythonFunction {
 public:
  // `vjp`: of LazyTensors, the inputs, then a cotangent per result; a gradient per input. Or None.
  PythonFunction(std::string name, py::function function, py::object vjp)
      : name_(std::move(name)), function_(std::move(function)), vjp_(std::move(vjp)) {}

  // The types of the results, found by calling the function with zeros of these types.
  std::vector<Type> infer(const std::vector<Type>& inputs) {
    const py::gil_scoped_acquire gil;
    for (const auto& [of, results] : inferred_)
      if (of == inputs) return results;
    const py::object zeros = py::module_::import("numpy").attr("zeros");
    py::list arguments;
    for (const Type& type : inputs)
      arguments.append(zeros(py::tuple(py::cast(type.sizes)), numpy_dtype(type.dtype)));
    std::vector<Type> results;
    for (const py::handle result : function_(arguments))
      results.push_back(contiguous(from_numpy(py::reinterpret_borrow<py::object>(result)).type()));
    inferred_.emplace_back(inputs, results);
    return results;
  }

  Arrays run(const Arrays& inputs) {
    const py::gil_scoped_acquire gil;
    std::vector<Type> types;
    py::list arguments;
    for (const Array& input : inputs) {
      types.push_back(contiguous(input.type()));
      arguments.append(py::module_::import("numpy").attr("array")(to_numpy(input)));
    }
    Arrays results;
    for (const py::handle result : function_(arguments))
      results.push_back(copy_of_numpy(py::reinterpret_borrow<py::object>(result)));
    const std::vector<Type> expected = infer(types);
    for (size_t i = 0; i < expected.size(); ++i)
      if (results.size() != expected.size() || results[i].type() != expected[i])
        throw UserError("[" + name_ + "] result " + std::to_string(i) + " is of " +
                        (i < results.size() ? print(results[i].type()) : "no type") +
                        "; for zeros it was " + print(expected[i]) +
                        ", and types may not depend on values");
    return results;
  }

  Gradients vjp(const LazyTensors& inputs, const Vjp& given, const std::vector<Type>& results) {
    const py::gil_scoped_acquire gil;
    if (vjp_.is_none())
      throw UserError(
          "'" + name_ +
          "' is a function of Python on values, whose derivative is not known; give it: "
          "@wrap_as_operation(vjp=lambda inputs…, cotangents…: gradients)");
    py::list arguments;
    for (const LazyTensor& input : inputs) arguments.append(NdArray(input));
    for (size_t i = 0; i < results.size(); ++i) {
      const LazyTensor& cotangent = given.cotangents[i];
      arguments.append(cotangent.defined() ? NdArray(cotangent)
                                           : NdArray(zeros(results[i].sizes, results[i].dtype)));
    }
    const auto gradients = vjp_(*arguments).cast<NdArrays>();
    if (gradients.size() != inputs.size())
      throw UserError("[" + name_ + "] expected " + std::to_string(inputs.size()) +
                      " gradients of vjp, received " + std::to_string(gradients.size()));
    Gradients all(gradients.begin(), gradients.end());
    for (size_t i = 0; i < all.size(); ++i) {
      if (category(inputs[i].dtype()) < DTypeCategory::floating)
        all[i] = {};
      else if (all[i].sizes() != inputs[i].sizes())
        throw UserError("[" + name_ + "] expected a gradient of sizes " + str(inputs[i].sizes()) +
                        " for input " + std::to_string(i) + ", received " + str(all[i].sizes()));
      else
        all[i] = to(all[i], inputs[i].dtype());
    }
    return all;
  }

  const std::string& name() const { return name_; }

 private:
  static Type contiguous(const Type& type) { return tensor_type(type.dtype, type.sizes); }

  std::string name_;
  py::function function_;
  py::object vjp_;
  std::vector<std::pair<std::vector<Type>, std::vector<Type>>> inferred_;
};

PythonFunction& function_in(const Opaque& opaque) {
  return *static_cast<PythonFunction*>(const_cast<void*>(opaque.object.get()));
}

std::vector<Type> types_of(const LazyTensors& tensors) {
  std::vector<Type> types;
  for (const LazyTensor& tensor : tensors)
    types.push_back(tensor_type(tensor.dtype(), tensor.type().sizes));
  return types;
}

constexpr const char* kPython = "composit::python";

void add_python_row() {
  composit::add_operation(
      {.schema = "composit::python(Tensor[] inputs, PythonFunction function) -> Tensor[]",
       .infer = [](LazyTensors inputs,
                   Opaque function) { return function_in(function).infer(types_of(inputs)); },
       .native = [](Arrays inputs, Opaque function) { return function_in(function).run(inputs); },
       .vjp =
           [](Vjp v, LazyTensors inputs, Opaque function) {
             PythonFunction& python = function_in(function);
             return python.vjp(inputs, v, python.infer(types_of(inputs)));
           }});
}

}  // namespace

void add_operation(py::module_& module) {
  add_python_row();
  const py::call_guard<PythonLine> guard;
  module.def("call_traced", &call_traced, "name"_a, "function"_a, "arguments"_a, guard,
             "One node that calls the region of what the function does to a list of LazyTensors.");
  // Held by the graph, which may be freed on a thread that knows nothing of Python.
  py::class_<PythonFunction, std::shared_ptr<PythonFunction>>(module, "PythonFunction")
      .def(py::init([](std::string name, py::function function, py::object vjp) {
             return std::shared_ptr<PythonFunction>(
                 new PythonFunction(std::move(name), std::move(function), std::move(vjp)),
                 [](PythonFunction* held) {
                   if (!Py_IsInitialized()) return;
                   const py::gil_scoped_acquire gil;
                   delete held;
                 });
           }),
           "name"_a, "function"_a, "vjp"_a = py::none())
      .def(
          "__call__",
          [](const std::shared_ptr<PythonFunction>& function, const NdArrays& arguments) {
            const LazyTensors results =
                apply(kPython, {LazyTensors(arguments.begin(), arguments.end()),
                                Attribute(Opaque{function->name(), function})});
            return NdArrays(results.begin(), results.end());
          },
          "arguments"_a, guard);
}

}  // namespace composit::python
