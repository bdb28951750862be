#include "flashlight/aten_backend.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/ops/guards.h"
#include "flashlight/backends/registry.h"
#include "flashlight/lent_generator.h"
#include "tracer/convert.h"
#include "tracer/replay.h"

namespace flashlight {
namespace {

using Arrays = std::vector<composit::Array>;

// In memory as the graph has it, which replays expect: conjugated or negated once more, where
// LibTorch leaves that to whoever reads.
at::Tensor argument(composit::Array array, const composit::Type& type) {
  if (type.conj) array = tracer::to_array(at::conj_physical(tracer::to_tensor(array)));
  if (type.neg) array = tracer::to_array(at::neg(tracer::to_tensor(array)));
  if (type.layout == composit::Layout::strided) array = array.with_strides(type.strides);
  at::Tensor tensor = tracer::to_tensor(array);
  tensor._set_conj(type.conj);
  tensor._set_neg(type.neg);
  return tensor;
}

// Elements as who reads them by their memory alone finds them.
composit::Array result_of(const at::Tensor& tensor) {
  return tracer::to_array(tensor.resolve_conj().resolve_neg());
}

// ---- draws --------------------------------------------------------------------------------------

// The role of the generator that draws in compiled code get.
constexpr const char* kLent = "lent";

bool takes_generator(const composit::Schema& schema) {
  return std::any_of(schema.arguments.begin(), schema.arguments.end(),
                     [](const auto& argument) { return argument.name == "generator"; });
}

// The same draw by a generator that is given: the draw itself, or an overload. nullptr: none.
const composit::Draw* with_generator(const composit::Draw& draw) {
  if (takes_generator(draw.schema)) return &draw;
  const auto names = [](const composit::Schema& schema) {
    std::vector<std::string> all;
    for (const auto& argument : schema.arguments)
      if (argument.name != "generator") all.emplace_back(argument.name);
    return all;
  };
  const auto base = [](const composit::Schema& schema) {
    const std::string name = schema.name.str();
    return name.substr(0, name.find('.'));
  };
  for (const composit::Draw* other : composit::all_draws())
    if (takes_generator(other->schema) && base(other->schema) == base(draw.schema) &&
        names(other->schema) == names(draw.schema))
      return other;
  return nullptr;
}

// The node as a draw by the lent generator; nothing if it is none, or one of a generator of the
// program's own.
std::optional<composit::NodeSpec> lent_draw(const composit::Node& node,
                                            const composit::LazyTensors& operands) {
  const composit::Draw* draw = composit::find_draw(node.op());
  const composit::Draw* other = draw == nullptr ? nullptr : with_generator(*draw);
  if (other == nullptr) return std::nullopt;
  composit::NodeSpec spec = composit::copy_of(node, operands);
  spec.op = other->schema.name;
  composit::Attributes attributes;
  for (const auto& argument : other->schema.arguments) {  // in the order of the schema
    if (argument.name == "generator") {
      const composit::Attribute* given = node.find_attribute("generator");
      const auto* role = given == nullptr ? nullptr : given->get_if<composit::Generator>();
      if (role != nullptr && role->role != "default") return std::nullopt;
      attributes.push_back({composit::Symbol("generator"), composit::Generator{kLent}});
    } else if (const composit::Attribute* given = node.find_attribute(argument.name)) {
      attributes.push_back({composit::Symbol(argument.name), *given});
    }
  }
  spec.attributes = std::move(attributes);
  return spec;
}

// True unless it is a guard, or operators around guards alone.
bool may_draw(const composit::Node& effect) {
  if (composit::guard_of(effect) != nullptr) return false;
  const composit::Attribute* body = effect.find_run("body");
  if (body == nullptr) return true;
  const auto& inner = (*body->as<composit::Region>()).effects();
  return std::any_of(inner.begin(), inner.end(),
                     [](const composit::NodePtr& one) { return may_draw(*one); });
}

// The graph with all its draws by the lent generator. Nothing where it has none, or effects of
// which some are neither draws nor guards: what those draw is of LibTorch's own generator.
std::optional<composit::Graph> with_lent_draws(const composit::Graph& graph) {
  bool has_draws = false;
  for (const composit::NodePtr& effect : graph.effects()) {
    const bool is_draw = lent_draw(*effect, effect->operands()).has_value();
    has_draws = has_draws || is_draw;
    if (!is_draw && may_draw(*effect)) return std::nullopt;
  }
  if (!has_draws) return std::nullopt;
  return composit::rebuild(graph,
                           [](const composit::Node& node, const composit::LazyTensors& operands) {
                             std::optional<composit::Replacement> replacement;
                             if (node.effect() >= 0)
                               if (auto spec = lent_draw(node, operands))
                                 replacement = composit::replace_by(std::move(*spec).make_node());
                             return replacement;
                           });
}

// ---- code ---------------------------------------------------------------------------------------

// A graph as LibTorch runs it. Draws are of a generator of its own, which goes on from the
// caller's: that may be LibTorch's, which is locked while it is lent.
class Replayed {
 public:
  explicit Replayed(const composit::Graph& graph) {
    for (const composit::LazyTensor& input : graph.inputs()) types_.push_back(input.type());
    composit::Graph::Parts parts = graph.parts();
    for (const composit::Mutation& mutation : parts.mutations)
      parts.outputs.push_back(mutation.value);
    parts.mutations.clear();
    composit::Graph plain(std::move(parts));
    tracer::PlanOptions options{.pin_strides = false};
    if (auto lent = with_lent_draws(plain)) {
      generator_ = at::make_generator<at::CPUGeneratorImpl>();
      options.generators.emplace(kLent, *generator_);
      plain = *std::move(lent);
    }
    plan_.emplace(plain, std::move(options));
  }

  bool draws() const { return generator_.has_value(); }

  Arrays run(const Arrays& inputs, fl::Generator* caller) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i)
      tensors.push_back(inputs[i].defined() ? argument(inputs[i], types_[i]) : at::Tensor());
    Arrays results;
    for (const at::Tensor& result : generator_ ? drawn(tensors, caller) : plan_->run(tensors))
      results.push_back(result.defined() ? result_of(result) : composit::Array());
    return results;
  }

 private:
  std::vector<at::Tensor> drawn(const std::vector<at::Tensor>& inputs, fl::Generator* caller) {
    const std::lock_guard<std::mutex> lock(drawing_);
    const fl::Generator fresh(at::default_rng_seed_val);
    set_state(*generator_, (caller == nullptr ? &fresh : caller)->state());
    std::vector<at::Tensor> results = plan_->run(inputs);
    if (caller != nullptr) *caller = fl::Generator(state_of(*generator_));
    return results;
  }

  std::vector<composit::Type> types_;
  std::optional<at::Generator> generator_;
  std::mutex drawing_;  // one call draws at a time
  std::optional<tracer::Plan> plan_;
};

class Aten : public composit::Backend {
 public:
  std::string name() const override { return "aten"; }

  std::string help() const override { return "runs LibTorch's operators"; }
  bool has_code(const composit::Operation& /*operation*/) const override { return true; }
  bool runs_operators_without_rows() const override { return true; }

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override {
    const auto replayed = std::make_shared<Replayed>(graph);
    if (replayed->draws())
      return composit::drawing_code_of(graph, options.name,
                                       [replayed](const Arrays& inputs, fl::Generator* generator) {
                                         return replayed->run(inputs, generator);
                                       });
    return composit::code_of(graph, options.name, [replayed](const Arrays& inputs) {
      return replayed->run(inputs, nullptr);
    });
  }
};

const BackendRegistration kRegistration(aten());

}  // namespace

const composit::Backend& aten() {
  static const Aten backend;
  return backend;
}

}  // namespace flashlight
