#include "flashlight/family_maker.h"

#include <ATen/Functions.h>

#include <map>
#include <set>

#include "composit/family/number_inputs.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "flashlight/family_numbers.h"
#include "flashlight/followed_numbers.h"
#include "tracer/geometry.h"

namespace flashlight {

using composit::Graph;
using composit::UserError;

namespace {

// "parameter_" of "parameter_3".
std::string word_of(const std::string& name) { return name.substr(0, name.rfind('_') + 1); }

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b) || !a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.has_storage() && b.has_storage() && a.const_data_ptr() == b.const_data_ptr() &&
         a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

void expect_same_gradients(const CaptureBase::State& first, const CaptureBase::State& other) {
  const auto names = [](const CaptureBase::State& state) {
    std::vector<std::string> found;
    for (const size_t input : state.replayed.gradients)
      found.push_back(state.replayed.inputs.at(input).name);
    return found;
  };
  if (names(first) != names(other))
    throw UserError(
        "[family] the program leaves other gradients in '.grad' on another way that it "
        "takes: return them instead");
}

// Each axis repeated or cut.
at::Tensor resized(at::Tensor tensor, const composit::Dims& sizes) {
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
    const int64_t size = sizes.at(static_cast<size_t>(axis));
    if (tensor.size(axis) == size) continue;
    const at::Tensor indices = at::arange(size, at::kLong).remainder(tensor.size(axis));
    tensor = tensor.index_select(axis, indices);
  }
  return tensor;
}

}  // namespace

std::vector<NamedTensor> FamilyMaker::inputs_of(const std::vector<CaptureBase>& examples,
                                                const Graph& graph) {
  std::map<std::string, NamedTensor> all;
  for (const CaptureBase& example : examples)
    for (const NamedTensor& input : example.now().replayed.inputs)
      if (const auto known = all.emplace(input.name, input).first;
          !same_tensor(known->second.tensor, input.tensor))
        throw UserError("[family] '" + input.name +
                        "' is another tensor on another way that the program takes: give its "
                        "module or tensor a name, or hold it longer");
  std::vector<NamedTensor> inputs;
  for (const composit::LazyTensor& input : graph.inputs())
    inputs.push_back(all.at(input_name(*input.node)));
  return inputs;
}

std::vector<Graph> FamilyMaker::graphs_of(const std::vector<CaptureBase>& examples) {
  std::vector<Graph> graphs;
  for (const CaptureBase& example : examples) graphs.push_back(graph_of(example));
  return graphs;
}

void FamilyMaker::expect_alike(const std::vector<CaptureBase>& examples) {
  const CaptureBase::State& first = examples.at(0).now();
  for (size_t i = 1; i < examples.size(); ++i) {
    const CaptureBase::State& other = examples[i].now();
    const std::string which = "examples 1 and " + std::to_string(i + 1);
    if (!same_but_for_numbers(other.arguments, first.arguments))
      throw UserError("[unify] " + which + " have arguments of other structures: " +
                      str(first.arguments) + " and " + str(other.arguments));
    if (other.results != first.results)
      throw UserError("[unify] " + which +
                      " have results of other structures: " + str(first.results) + " and " +
                      str(other.results) + "; return sizes as tensors, or not at all");
    if (other.grad != first.grad)
      throw UserError("[unify] " + which + " ran in different grad modes");
    if (!other.changing.empty() || !first.changing.empty())
      throw UserError("[unify] expected examples whose numbers do not follow the calls");
  }
}

CaptureBase FamilyMaker::bound(const std::vector<CaptureBase>& examples, const Graph& graph) {
  const CaptureBase::State& from = examples.at(0).now();
  auto state = std::make_shared<CaptureBase::State>();
  Graph::Parts parts = graph.parts();
  parts.outputs.resize(from.graph.outputs().size());  // the others are gradients
  state->graph = Graph(std::move(parts));
  state->inputs = inputs_of(examples, graph);
  state->replayed = {graph, state->inputs, from.replayed.gradients};
  state->grad = from.grad;
  state->arguments = from.arguments;
  state->results = from.results;
  for (const CaptureBase& example : examples) {
    const CaptureBase::State& other = example.now();
    expect_same_gradients(from, other);
    state->borrows_memory = state->borrows_memory || other.borrows_memory;
    state->tied.insert(other.tied.begin(), other.tied.end());
    state->generators.insert(other.generators.begin(), other.generators.end());
  }
  state->remarks = from.remarks;
  state->trust = Trust::confirmed;
  state->notes = {"bound: a family of captures at other sizes gave this graph"};
  state->program = from.program;
  state->program_as = from.program_as;
  state->named = from.named;
  state->options = from.options;
  state->of_family = true;
  std::vector<composit::Dims> sizes;
  for (size_t i = 0; i < state->inputs.size(); ++i)
    if (state->inputs[i].kind == composit::InputKind::user_input)
      sizes.push_back(graph.inputs()[i].sizes());
  state->make_arguments = [shown = from.shown_arguments(), sizes = std::move(sizes)] {
    std::vector<at::Tensor> arguments;
    for (size_t i = 0; i < sizes.size(); ++i) arguments.push_back(resized(shown.at(i), sizes[i]));
    return arguments;
  };
  return CaptureBase(std::move(state));
}

void FamilyMaker::set_numbers(const CaptureBase& bound, const composit::NumberValues& numbers) {
  CaptureBase::State& state = *bound.state_;
  Structure arguments = with_numbers(state.arguments, numbers);
  if (arguments == state.arguments) return;
  if (state.program && state.program_as) state.program = state.program_as(arguments);
  state.arguments = std::move(arguments);
}

CaptureBase FamilyMaker::open(const CaptureBase& example, const composit::Family& family,
                              const composit::Binding& binding) {
  const CaptureBase capture = bound({example}, binding.graph);
  std::map<const composit::Node*, size_t> places;
  for_each_node(binding.graph,
                [&](const composit::Node& node) { places.emplace(&node, places.size()); });
  std::map<std::string, composit::LazyTensor> reads;
  for (const composit::FreeNumber& number : family.numbers)
    if (number.read) reads.emplace(number.name, binding.of(number.read));
  for (const composit::NumberUse& use : family.number_uses) {
    if (use.node->find_attribute(use.key) == nullptr) continue;  // the read itself
    ChangingPlace place{places.at(binding.of({use.node, 0}).node.get()), use.key, use.formula};
    use.formula.for_each_name([&](const std::string& name) {
      if (const auto read = reads.find(name); read != reads.end()) place.reads.insert(*read);
    });
    capture.state_->changing.push_back(std::move(place));
  }
  return capture;
}

CaptureBase FamilyMaker::with_number_inputs(const CaptureBase& example,
                                            const composit::Family& family,
                                            const composit::Binding& binding,
                                            const std::vector<std::string>& names) {
  const Graph graph = composit::with_number_inputs(family, binding, names);
  const CaptureBase plain = bound({example}, binding.graph);
  const auto state = without_graph(plain);
  Graph::Parts parts = graph.parts();
  parts.outputs.resize(example.now().graph.outputs().size());  // the others are gradients
  state->graph = Graph(std::move(parts));
  state->inputs = plain.now().inputs;
  state->of_family = true;
  for (const std::string& name : names)
    state->inputs.push_back({"number." + name, {}, composit::InputKind::user_input});
  state->make_arguments = [make = state->make_arguments, count = names.size()] {
    std::vector<at::Tensor> arguments = make();
    for (size_t i = 0; i < count; ++i) arguments.push_back(at::ones({}, at::kDouble));
    return arguments;
  };
  state->replayed = {state->graph, state->inputs, {}};
  return CaptureBase(state);
}

std::shared_ptr<const CaptureBase::State> FamilyMaker::with_numbers_inside(
    const CaptureBase& capture) {
  const CaptureBase::State& from = capture.now();
  if (from.changing.empty()) return capture.shared();
  std::call_once(from.made_inside, [&] {
    const auto state = without_graph(capture);
    const Graph graph = flashlight::with_numbers_inside(from.replayed.graph, from.changing);
    Graph::Parts parts = graph.parts();
    parts.outputs.resize(from.graph.outputs().size());  // the others are gradients
    state->graph = Graph(std::move(parts));
    state->inputs = from.replayed.inputs;
    state->replayed = {state->graph, state->inputs, {}};
    from.with_numbers_inside = state;
  });
  return from.with_numbers_inside;
}

std::vector<CaptureBase> FamilyMaker::with_common_names(std::vector<CaptureBase> examples) {
  std::map<const c10::TensorImpl*, std::string> names;
  std::set<std::string> taken;
  for (CaptureBase& example : examples) {
    const std::vector<NamedTensor>& inputs = example.now().replayed.inputs;
    std::map<std::string, std::string> renamed;
    std::set<std::string> now;  // names in the example that stay, or are given
    std::vector<const NamedTensor*> others;
    for (const NamedTensor& input : inputs) {
      const bool may_change = input.tensor.defined() && is_unnamed(input.name);
      const auto known = may_change ? names.find(input.tensor.unsafeGetTensorImpl()) : names.end();
      if (may_change && known == names.end())
        others.push_back(&input);
      else
        now.insert(known == names.end() ? input.name : known->second);
      if (known != names.end() && known->second != input.name) renamed[input.name] = known->second;
    }
    for (const NamedTensor* input : others) {
      std::string name = input->name;
      const auto is_free = [&] { return !now.contains(name) && !taken.contains(name); };
      for (size_t next = 0; !is_free(); ++next) {
        name = word_of(input->name) + std::to_string(next);
        if (taken.contains(name)) name = input->name;
      }
      if (name != input->name) renamed[input->name] = name;
      now.insert(name);
    }
    if (!renamed.empty()) example = with_names(example, renamed);
    for (const NamedTensor& input : example.now().replayed.inputs)
      if (input.tensor.defined()) names.emplace(input.tensor.unsafeGetTensorImpl(), input.name);
    taken.insert(now.begin(), now.end());
  }
  return examples;
}

CaptureBase FamilyMaker::with_names(const CaptureBase& example,
                                    const std::map<std::string, std::string>& names) {
  const CaptureBase::State& from = example.now();
  const auto name_of = [&](const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  };
  const auto renamed = [&](const Graph& graph) {
    return rebuild(graph, [&](const composit::Node& node, const composit::LazyTensors& operands) {
      std::optional<composit::Replacement> replacement;
      if (!is_input(node) || composit::input_kind(node) == composit::InputKind::block)
        return replacement;
      composit::NodeSpec spec = copy_of(node, operands);
      for (composit::NamedAttribute& attribute : spec.attributes)
        if (attribute.name.str() == "name" || attribute.name.str() == "shares")
          attribute.value = name_of(attribute.value.as<std::string>());
      replacement = replace_by(std::move(spec).make_node());
      return replacement;
    });
  };
  const auto state = without_graph(example);
  state->graph = renamed(from.graph);
  state->replayed = from.replayed;
  state->replayed.graph = renamed(from.replayed.graph);
  state->inputs = from.inputs;
  for (std::vector<NamedTensor>* inputs : {&state->inputs, &state->replayed.inputs})
    for (NamedTensor& input : *inputs) input.name = name_of(input.name);
  return CaptureBase(state);
}

std::shared_ptr<CaptureBase::State> FamilyMaker::without_graph(const CaptureBase& example) {
  const CaptureBase::State& from = example.now();
  auto state = std::make_shared<CaptureBase::State>();
  state->grad = from.grad;
  state->arguments = from.arguments;
  state->results = from.results;
  if (!from.make_arguments) state->example_arguments = from.example_arguments;
  state->make_arguments = from.make_arguments;
  state->example_results = from.example_results;
  state->example_generator = from.example_generator;
  state->borrows_memory = from.borrows_memory;
  state->tied = from.tied;
  state->generators = from.generators;
  state->remarks = from.remarks;
  state->trust = from.trust.load();
  state->by_name = from.by_name;
  state->notes = from.notes;
  state->recording = from.recording;
  state->program = from.program;
  state->program_as = from.program_as;
  state->named = from.named;
  state->options = from.options;
  return state;
}

CaptureBase FamilyMaker::published_again(const CaptureBase& example,
                                         const std::map<std::string, at::Tensor>& tensors) {
  const auto state = without_graph(example);
  state->remarks.clear();
  state->take(*state->recording, {});
  for (std::vector<NamedTensor>* inputs : {&state->inputs, &state->replayed.inputs})
    for (NamedTensor& input : *inputs)
      if (const auto found = tensors.find(input.name); found != tensors.end())
        input.tensor = found->second;
  return CaptureBase(state);
}

std::vector<at::Tensor> FamilyMaker::run_part(const CaptureBase& example, const Graph& part,
                                              const std::vector<at::Tensor>& arguments) {
  const CaptureBase::State& state = example.now();
  tracer::PlanOptions options{state.grad, state.generators};
  options.as_program = true;
  options.pin_types = false;
  return tracer::Plan(part, std::move(options)).run(state.bind_replay(arguments));
}

CaptureBase FamilyMaker::run(const CaptureBase& example, const FlatValues& arguments) {
  const CaptureBase::State& state = example.now();
  if (!state.program)
    throw UserError("[family] a loaded family does not know its program: trace it again");
  const bool is_other = arguments.structure != state.arguments;
  if (is_other && !state.program_as)
    throw UserError(
        "[family] expected the numbers of the first example among the arguments, to run "
        "the program with: " +
        str(state.arguments));
  const c10::AutoGradMode grad(state.grad);
  return CaptureBase::capture(
      {.run = is_other ? state.program_as(arguments.structure) : state.program,
       .run_as = state.program_as,
       .named = state.named,
       .seen_once = true},
      arguments, state.options);
}

std::vector<composit::Type> FamilyMaker::types_of(const CaptureBase& example,
                                                  const std::vector<at::Tensor>& arguments) {
  const CaptureBase::State& state = example.now();
  std::vector<composit::Type> types;
  for (const at::Tensor& tensor : state.bind_replay(arguments))
    types.push_back(tensor.defined() ? tracer::type_of(tensor) : composit::undefined_type());
  return types;
}

}  // namespace flashlight
