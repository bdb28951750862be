// Optimizers, steps of training, first values of parameters.
#include "frontends/python/bindings/composit/evaluate.h"
#include "frontends/python/bindings/composit/nn.h"

namespace composit::python {
namespace {

// A number, or a tensor of one element.
nn::Rate rate(const numpy::Operand& value) {
  if (!value.is_number()) return value.array();
  return std::visit(
      [](auto number) -> double {
        if constexpr (std::is_convertible_v<decltype(number), double>)
          return static_cast<double>(number);
        else
          throw UserError("[optimize] expected a real learning rate");
      },
      value.number());
}

LazyTensors tensors_of(const NdArrays& arrays) { return {arrays.begin(), arrays.end()}; }

void add_optimizers(py::module_& module) {
  py::class_<nn::Optimizer>(module, "Update",
                            "How a parameter follows from its gradient and what is kept of it.")
      .def_property_readonly(
          "state",
          [](const nn::Optimizer& optimizer) {
            py::list state;
            for (const auto& kept : optimizer.state)
              state.append(py::make_tuple(kept.name, kept.is_count));
            return state;
          },
          "(name, whether it is a count of steps) of what is kept per parameter.")
      .def(
          "__call__",
          [](const nn::Optimizer& optimizer, const NdArray& parameter, const NdArray& gradient,
             const NdArrays& state) {
            NdArrays results;
            for (const LazyTensor& result :
                 optimizer.update(parameter, gradient, tensors_of(state)))
              results.emplace_back(result);
            return results;
          },
          "parameter"_a, "gradient"_a, "state"_a = NdArrays(), py::call_guard<PythonLine>(),
          "The new parameter, then the new state.");
  using Number = numpy::Operand;
  const auto default_rate = "learning_rate"_a = 1e-3;
  module.def(
      "sgd",
      [](const Number& learning_rate, double momentum, double dampening, double weight_decay,
         bool nesterov) {
        return nn::sgd({.learning_rate = rate(learning_rate),
                        .momentum = momentum,
                        .dampening = dampening,
                        .weight_decay = weight_decay,
                        .nesterov = nesterov});
      },
      default_rate, py::kw_only(), "momentum"_a = 0.0, "dampening"_a = 0.0, "weight_decay"_a = 0.0,
      "nesterov"_a = false);
  const auto with_moments = [&]<class Options>(const char* name,
                                               nn::Optimizer (*make)(const Options&)) {
    module.def(
        name,
        [make](const Number& learning_rate, double beta1, double beta2, double eps,
               double weight_decay, bool amsgrad) {
          return make({.learning_rate = rate(learning_rate),
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .eps = eps,
                       .weight_decay = weight_decay,
                       .amsgrad = amsgrad});
        },
        default_rate, py::kw_only(), "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-8,
        "weight_decay"_a = Options().weight_decay, "amsgrad"_a = false);
  };
  with_moments("adam", &nn::adam);
  with_moments("adamw", &nn::adamw);
}

}  // namespace

void add_nn(py::module_& module) {
  py::module_ functions =
      module.def_submodule("nn", "torch.nn.functional's names, on LazyTensors.");
  const Functional def(functions);
  add_nn_activations(def);
  add_nn_windows(def);
  add_nn_normalization(def);
  add_nn_losses(def);
  add_nn_layers(def, functions);
  add_optimizers(functions);
}

}  // namespace composit::python
