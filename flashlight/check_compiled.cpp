#include "flashlight/check_compiled.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "flashlight/backends/registry.h"
#include "flashlight/capture_state.h"
#include "flashlight/float64.h"
#include "flashlight/saved_state.h"
#include "flashlight/shared_code.h"
#include "tracer/convert.h"
#include "tracer/replay.h"

namespace flashlight {
namespace {

using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Node;
using composit::UserError;
using composit::WrittenValue;
using Tensors = std::vector<at::Tensor>;

// ---- errors -------------------------------------------------------------------------------------

// Elements that are equal, infinities and NaN included, have none.
at::Tensor differences(const at::Tensor& value, const at::Tensor& exact) {
  const at::Tensor equal = value.eq(exact).logical_or(value.isnan().logical_and(exact.isnan()));
  const at::Tensor apart = (value - exact).abs();
  return at::where(equal, at::zeros_like(apart), apart.nan_to_num(HUGE_VAL, HUGE_VAL));
}

// By the elements that are numbers.
double spread_of(const at::Tensor& exact) {
  const at::Tensor finite = exact.masked_select(exact.isfinite());
  if (finite.numel() == 0) return 1;
  const double spread = (finite - finite.mean()).square().mean().sqrt().item<double>(),
               magnitude = finite.abs().max().item<double>();
  // Sums of equal numbers are rounded, too.
  return spread > 1e-12 * magnitude ? spread : magnitude > 0 ? magnitude : 1;
}

ErrorOfValue error_of(const at::Tensor& value, const at::Tensor& exact) {
  if (exact.numel() == 0) return {};
  const at::Tensor apart = differences(value.detach().to(c10::kDouble), exact);
  const double spread = spread_of(exact);
  return {.rms = apart.square().mean().sqrt().item<double>() / spread,
          .largest = apart.max().item<double>() / spread};
}

// Both errors are draws of the same chance: the fewer elements there are, the more they differ.
bool is_worse(const CheckedValue& value) {
  const double chance = 1.1 + 3 / std::sqrt(static_cast<double>(value.elements));
  return value.compiled.rms > chance * std::hypot(value.eager.rms, value.rounding);
}

// ---- graphs -------------------------------------------------------------------------------------

bool is_compared(const LazyTensor& value) {
  return value && composit::is_defined(value.type()) &&
         composit::is_floating_point(value.dtype()) &&
         value.type().layout == composit::Layout::strided && value.numel() > 0;
}

// What is written to inputs becomes results, so that runs leave the program's tensors alone.
Graph without_writes(const Graph& graph) {
  Graph::Parts parts = graph.parts();
  for (const composit::Mutation& mutation : parts.mutations)
    parts.outputs.push_back(mutation.value);
  parts.mutations.clear();
  return Graph(std::move(parts));
}

Graph with_results(const Graph& graph, const LazyTensors& further) {
  Graph::Parts parts = graph.parts();
  parts.outputs.insert(parts.outputs.end(), further.begin(), further.end());
  return Graph(std::move(parts));
}

// The operands that a product, or attention, multiplies; none for other operations.
std::vector<size_t> factors_of(const Node& node) {
  const std::string_view name = node.op().base_name();
  for (const std::string_view one :
       {"linear", "mm", "bmm", "matmul", "mv", "dot", "convolution", "_convolution", "conv1d",
        "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    if (name == one) return {0, 1};
  for (const std::string_view one : {"addmm", "baddbmm", "addbmm", "addmv"})
    if (name == one) return {1, 2};
  if (name.find("scaled_dot_product") != std::string_view::npos) return {0, 1, 2};
  return {};
}

// The graph with all factors of these products rounded to `dtype`.
Graph with_rounded(const Graph& graph, const std::vector<const Node*>& products, DType dtype) {
  return composit::rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
    std::optional<composit::Replacement> replacement;
    if (std::count(products.begin(), products.end(), &node) == 0) return replacement;
    LazyTensors rounded = operands;
    for (const size_t factor : factors_of(node))
      rounded[factor] =
          composit::to(composit::to(operands[factor], dtype), operands[factor].dtype());
    replacement = composit::replace_by(composit::copy_of(node, std::move(rounded)).make_node());
    return replacement;
  });
}

// ---- the check ----------------------------------------------------------------------------------

// A value to compare, and what the backend says of it.
struct Watched {
  LazyTensor value;
  WrittenValue written;
};

}  // namespace

class CompiledChecker {
 public:
  static const CaptureBase::State& state_of(const CaptureBase& captured) { return captured.now(); }

  CompiledChecker(const CaptureBase::State& state, const CompileSettings& settings,
                  const Tensors& arguments, const CheckCompiledOptions& options)
      : state_(state),
        settings_(settings),
        options_(options),
        graph_(without_writes(state.graph)),
        inputs_(state.bind(arguments)) {
    for (at::Tensor& input : inputs_) input = input.detach();
  }

  CompiledReport run() {
    report_.backend = name_of(settings_.backend);
    try {
      compare();
    } catch (const std::exception& error) {
      report_.error = error.what();
    }
    return std::move(report_);
  }

 private:
  static std::string name_of(const composit::BackendChoice& choice) {
    std::string text = choice.name;
    for (const auto& [name, value] : choice.options)
      if (!composit::text_of(value).empty()) text += ", " + name + " " + composit::text_of(value);
    return text;
  }

  void compare() {
    const std::vector<Watched> watched = values_to_watch();
    const Tensors exact = compare_results();
    // Groups that fit into the memory; each is compiled for itself.
    for (size_t begin = 0; begin < watched.size();) {
      size_t end = begin;
      for (int64_t bytes = 0; end < watched.size() && (end == begin || bytes < options_.memory);
           ++end)
        bytes += 3 * 8 * watched[end].value.numel();
      compare_values({watched.begin() + static_cast<ptrdiff_t>(begin),
                      watched.begin() + static_cast<ptrdiff_t>(end)});
      begin = end;
    }
    for (CheckedValue& value : report_.values)
      value.worse = report_.lowered == 0 && is_worse(value);
    for (CheckedValue& value : report_.results)
      value.worse = report_.lowered == 0 && is_worse(value);
    measure_alone();
    sort();
  }

  // ---- values -----------------------------------------------------------------------------------

  bool has_value(const Node& node) const {
    return !composit::is_input(node) && node.op() != composit::ops::kConstant &&
           !node.outputs().empty();
  }
  static std::optional<LazyTensor> value_of(const composit::NodePtr& node) {
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (const LazyTensor value{node, i}; is_compared(value)) return value;
    return std::nullopt;
  }

  std::vector<WrittenValue> written_by(const Graph& graph) const {
    return backend_named(settings_.backend.name).written_values(graph, compile_options(settings_));
  }

  std::vector<Watched> values_to_watch() {
    const std::vector<WrittenValue> written = written_by(graph_);
    std::map<size_t, WrittenValue> by_node;  // the last that is a part of a node is its value
    for (const WrittenValue& one : written) {
      count_product(one);
      WrittenValue& kept = by_node[one.node];
      const bool keeps = kept.product && !one.product;
      if (!keeps) kept = one;
    }
    const bool every = options_.every_node || written.empty();
    std::vector<Watched> watched;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const composit::NodePtr& node = graph_.nodes()[i];
      const std::optional<LazyTensor> value = value_of(node);
      if (!value || !has_value(*node)) continue;
      ++report_.nodes;
      const auto found = by_node.find(i);
      if (found != by_node.end())
        watched.push_back({*value, found->second});
      else if (every)
        watched.push_back({*value, {.name = {}, .node = i}});
    }
    return watched;
  }
  void count_product(const WrittenValue& value) {
    if (!value.product) return;
    ++report_.products;
    if (is_lowered(value)) ++report_.lowered;
  }

  // The products among the nodes of a kernel: one, or those of attention.
  std::vector<const Node*> products_of(const WrittenValue& value) const {
    std::vector<const Node*> products;
    for (const size_t number : value.nodes)
      if (!factors_of(*graph_.nodes()[number]).empty())
        products.push_back(graph_.nodes()[number].get());
    return products;
  }
  bool is_lowered(const WrittenValue& value) const {
    if (!value.product) return false;
    const std::vector<const Node*> products = products_of(value);
    const DType dtype = products.empty()
                            ? graph_.nodes()[value.node]->outputs()[0].dtype
                            : products[0]->operands()[factors_of(*products[0])[0]].dtype();
    return composit::item_size(*value.product) < composit::item_size(dtype);
  }

  // ---- runs -------------------------------------------------------------------------------------

  Tensors run_plan(const Graph& graph, const Tensors& inputs) const {
    return tracer::Plan(graph, {.generators = state_.generators, .pin_strides = false}).run(inputs);
  }
  Tensors run_compiled(const Graph& graph) const {
    return CompiledGraph(graph, settings_)(inputs_);
  }
  // `halves`: 16-bit floats, too.
  Tensors run_exact(const Graph& graph, bool halves) const {
    Tensors inputs;
    for (const at::Tensor& input : inputs_) {
      const c10::ScalarType dtype = input.scalar_type();
      const bool widens =
          dtype == c10::kFloat || (halves && (dtype == c10::kHalf || dtype == c10::kBFloat16));
      inputs.push_back(widens ? input.to(c10::kDouble) : input);
    }
    return run_plan(in_float64(graph, halves), inputs);
  }

  CheckedValue measured(const at::Tensor& compiled, const at::Tensor& eager,
                        const at::Tensor& exact) const {
    CheckedValue value;
    value.elements = exact.numel();
    value.compiled = error_of(compiled, exact);
    value.eager = error_of(eager, exact);
    value.rounding = error_of(exact.to(eager.scalar_type()), exact).rms;
    return value;
  }

  Tensors compare_results() {
    const Tensors compiled = run_compiled(graph_), eager = run_plan(graph_, inputs_),
                  exact = run_exact(graph_, /*halves=*/true);
    for (size_t i = 0; i < exact.size(); ++i) {
      const LazyTensor& result = graph_.outputs()[i];
      if (!is_compared(result)) continue;
      CheckedValue value = measured(compiled[i], eager[i], exact[i]);
      value.name = "result " + std::to_string(i);
      value.place = tracer::place_of(*result.node);
      report_.results.push_back(std::move(value));
    }
    return exact;
  }

  void compare_values(const std::vector<Watched>& watched) {
    LazyTensors further;
    for (const Watched& one : watched) further.push_back(one.value);
    const Graph graph = with_results(graph_, further);
    note_other_products(graph);
    const Tensors compiled = run_compiled(graph), eager = run_plan(graph, inputs_),
                  exact = run_exact(graph, /*halves=*/true);
    const size_t first = graph_.outputs().size();
    for (size_t i = 0; i < watched.size(); ++i) {
      CheckedValue value = measured(compiled[first + i], eager[first + i], exact[first + i]);
      const WrittenValue& written = watched[i].written;
      value.name = written.name;
      value.place = tracer::place_of(*watched[i].value.node);
      if (written.product) value.product = composit::name(*written.product);
      value.lowered = is_lowered(written);
      report_.values.push_back(std::move(value));
      written_.push_back(written);
    }
  }

  // More results may make another plan.
  void note_other_products(const Graph& graph) {
    std::map<size_t, DType> formats;  // of products, by node
    for (const WrittenValue& one : written_by(graph_))
      if (one.product) formats[one.node] = *one.product;
    std::string names;
    for (const WrittenValue& one : written_by(graph)) {
      const auto found = formats.find(number_in_program(graph, one.node));
      if (one.product && found != formats.end() && found->second != *one.product)
        names += (names.empty() ? "" : ", ") + one.name;
    }
    if (!names.empty())
      report_.notes.push_back(
          "where values are compared, products have another format than in the program: " + names);
  }
  // Further results change the order of nodes.
  size_t number_in_program(const Graph& graph, size_t node) const {
    const auto& nodes = graph_.nodes();
    const auto found = std::find(nodes.begin(), nodes.end(), graph.nodes()[node]);
    return static_cast<size_t>(found - nodes.begin());
  }

  // ---- what each costs --------------------------------------------------------------------------

  void measure_alone() {
    std::vector<size_t> lowered;
    for (size_t i = 0; i < report_.values.size(); ++i)
      if (report_.values[i].lowered) lowered.push_back(i);
    if (lowered.empty()) return;
    std::stable_sort(lowered.begin(), lowered.end(), [this](size_t a, size_t b) {
      return report_.values[a].compiled.rms > report_.values[b].compiled.rms;
    });
    if (lowered.size() > options_.alone) {
      report_.notes.push_back("what each costs alone was measured for " +
                              std::to_string(options_.alone) + " of " +
                              std::to_string(lowered.size()) + " lowered products");
      lowered.resize(options_.alone);
    }
    const Tensors exact = run_exact(graph_, /*halves=*/false);
    for (const size_t i : lowered) measure_alone(report_.values[i], written_[i], exact);
  }

  void measure_alone(CheckedValue& value, const WrittenValue& written, const Tensors& exact) {
    const std::vector<const Node*> products = products_of(written);
    if (products.empty()) {
      report_.notes.push_back("what " + value.name + " costs alone is not known: it is within " +
                              value.place);
      return;
    }
    const Tensors rounded =
        run_exact(with_rounded(graph_, products, *written.product), /*halves=*/false);
    ErrorOfValue worst;
    for (size_t i = 0; i < exact.size(); ++i) {
      if (!is_compared(graph_.outputs()[i])) continue;
      const ErrorOfValue error = error_of(rounded[i], exact[i].to(c10::kDouble));
      if (error.rms > worst.rms) worst = error;
    }
    value.alone = worst;
  }

  void sort() {
    const auto key = [](const CheckedValue& value) {
      const double own = std::max({value.eager.rms, value.rounding, 1e-300});
      return value.lowered
                 ? std::tuple(1, value.alone ? value.alone->rms : -1.0, value.compiled.rms)
                 : std::tuple(0, value.compiled.rms / own, value.compiled.rms);
    };
    std::stable_sort(report_.values.begin(), report_.values.end(),
                     [&](const CheckedValue& a, const CheckedValue& b) { return key(a) > key(b); });
  }

  const CaptureBase::State& state_;
  const CompileSettings& settings_;
  const CheckCompiledOptions& options_;
  const Graph graph_;
  Tensors inputs_;
  std::vector<WrittenValue> written_;  // by value of the report, before that is sorted
  CompiledReport report_;
};

CompiledReport check_compiled_flat(const CaptureBase& captured, const CompileSettings& settings,
                                   const Tensors& arguments, const CheckCompiledOptions& options) {
  captured.expect_trust("a check of compiled code");
  const CaptureBase frozen = captured.frozen();
  frozen.expect_fixed_numbers("check");
  if (!generators_read(frozen.graph()).empty())
    throw UserError(
        "[check] expected a program whose values follow from its arguments, received one that "
        "draws "
        "random numbers, of which float64 would draw others: check it in eval mode");
  const c10::AutoGradMode no_grad(false);
  return CompiledChecker(CompiledChecker::state_of(frozen), settings, arguments, options).run();
}

}  // namespace flashlight
