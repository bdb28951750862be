#include "composit/family/bind.h"

#include <algorithm>
#include <set>

#include "composit/family/result_types.h"
#include "composit/family/written_views.h"
#include "composit/ir/error.h"
#include "composit/ir/integers.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

// ---- nodes --------------------------------------------------------------------------------------

std::string place_of(const Node& node) {
  const std::string_view source = node.annotation("source");
  return node.op().str() + (source.empty() ? "" : " at " + std::string(source));
}

[[noreturn]] void lacks(const ValueSize& size) {
  throw UserError("[bind] expected a number for the size '" + size.name + "' of " +
                  place_of(*size.value.node) + ", which depends on values");
}

const Symbol kCond("composit::cond"), kWhile("composit::while_loop"), kScan("composit::scan"),
    kMap("composit::map");

// The types of what a branch or loop hands to its regions: dense. composit/ops/control_flow.h says
// which operands these are.
std::vector<Type> types_for_regions(Symbol op, const NodeSpec& spec) {
  std::vector<Type> types;
  const size_t sequences = op == kScan ? 1 : op == kMap ? 0 : spec.arguments.size();
  const size_t trips = op == kScan ? 3 : spec.arguments.size();
  for (size_t a = op == kCond ? 1 : 0; a < std::min(trips, spec.arguments.size()); ++a)
    for (uint32_t i = 0; i < spec.arguments[a].size; ++i) {
      const Type& type = spec.operands.at(spec.arguments[a].begin + i).type();
      const auto slot = type.sizes.begin() + (a == sequences ? 1 : 0);
      types.push_back(tensor_type(type.dtype, {slot, type.sizes.end()}));
    }
  return types;
}

class Binder {
 public:
  Binder(const Family& family, const Graph& graph, const std::vector<int64_t>& value_sizes,
         const NumberOfUse& number_of = nullptr)
      : family_(family), graph_(graph), value_sizes_(value_sizes), number_of_(number_of) {
    written_ = written_views(graph);
    for (const NumberUse& use : family.number_uses)
      if (number_of) uses_[use.node.get()].push_back(&use);
  }

  Binding run(const std::vector<Type>& input_types) {
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      set(*graph_.inputs()[i].node, bound_input(*graph_.inputs()[i].node, input_types.at(i)));
    for (const NodePtr& node : graph_.nodes())
      if (!is_input(*node)) set(*node, bound(node));
    return {Graph(parts()), std::move(values_)};
  }

 private:
  void set(const Node& node, const NodePtr& now) {
    LazyTensors outputs;
    for (uint32_t i = 0; i < now->outputs().size(); ++i) outputs.push_back({now, i});
    values_.insert(&node, std::move(outputs));
    nodes_.insert(&node, now);
  }

  LazyTensor value(const LazyTensor& example) const {
    return example ? values_.find(example.node.get())->at(example.index) : LazyTensor();
  }

  static NodePtr bound_input(const Node& example, const Type& type) {
    NodeSpec spec = copy_of(example, {});
    spec.outputs = {type};
    if (type == example.outputs()[0]) spec.held = example.held();
    return std::move(spec).make_node();
  }

  NodePtr bound(const NodePtr& example) {
    LazyTensors operands;
    bool same = true;
    for (const LazyTensor& operand : example->operands()) {
      operands.push_back(value(operand));
      same = same && operands.back().node == operand.node;
    }
    const NodeFormulas& formulas = family_.formulas_of(*example);
    const bool has_number = uses_.contains(example.get());
    if (same && formulas.empty() && !has_number && !has_formulas_inside(*example)) return example;
    try {
      return bound(*example, std::move(operands), formulas);
    } catch (const UserError& error) {
      const std::string what = error.what();
      if (what.starts_with("[bind]")) throw;
      throw UserError("[bind] " + place_of(*example) + ": " + what);
    }
  }

  bool has_formulas_inside(const Node& node) const {
    bool found = false;
    for_each_region(node, [&](const Region& region) {
      for (const NodePtr& inner : region->nodes())
        found = found || family_.formulas.contains(inner.get()) || has_formulas_inside(*inner);
    });
    return found;
  }

  NodePtr bound(const Node& example, LazyTensors operands, const NodeFormulas& formulas) {
    NodeSpec spec = copy_of(example, std::move(operands));
    for (const IntegerFormula& one : formulas) {
      if (one.of == IntegerFormula::Of::output) continue;
      Attribute& attribute =
          (one.of == IntegerFormula::Of::attribute ? spec.attributes : spec.execution)
              .at(one.number)
              .value;
      std::vector<int64_t> integers = integers_of(attribute);
      integers.at(one.position) = number_of(one.formula);
      attribute = with_integers(attribute, integers);
    }
    set_numbers(example, spec);
    bind_regions(example, spec);
    if (spec.op == ops::kConstant || example.outputs().empty()) return std::move(spec).make_node();
    return typed(example, std::move(spec), formulas);
  }

  void set_numbers(const Node& example, NodeSpec& spec) const {
    const auto found = uses_.find(&example);
    if (found == uses_.end()) return;
    for (const NumberUse* use : found->second)
      for (Attributes* attributes : {&spec.attributes, &spec.execution})
        for (NamedAttribute& attribute : *attributes)
          if (attribute.name.str() == use->key)
            attribute.value = with_real_number(attribute.value, number_of_(*use));
  }

  int64_t number_of(const SizeFormula& formula) const {
    return formula.evaluate(
        [this](const LazyTensor& tensor, size_t axis) { return value(tensor).sizes().at(axis); });
  }

  // The same node with the types that its results have.
  NodePtr typed(const Node& example, NodeSpec spec, const NodeFormulas& formulas) const {
    NodeSpec draft = spec;
    const NodePtr node = std::move(draft).make_node();  // with the example's types
    const Operation* operation = operation_of(*node);
    std::vector<Dims> sizes;
    for (const Type& type : example.outputs()) sizes.push_back(type.sizes);
    const Attribute* body = node->find_run("body");
    if (!set_open_sizes(example, formulas, sizes)) {
      if (body != nullptr)
        take_sizes(body->as<Region>()->outputs(), sizes);
      else if (operation != nullptr)
        infer_sizes(*operation, *node, sizes);
    }
    spec.outputs = result_types(*node, example, operation, sizes);
    for (Type& type : spec.outputs) type = with_plain_unit_strides(std::move(type));
    const NodePtr made = std::move(spec).make_node();
    if (written_.contains(&example)) expect_same_memory(*made, example);
    return made;
  }

  // The sizes that no row infers; false: there are none.
  bool set_open_sizes(const Node& example, const NodeFormulas& formulas,
                      std::vector<Dims>& sizes) const {
    bool any = false;
    for (const IntegerFormula& one : formulas) {
      if (one.of != IntegerFormula::Of::output) continue;
      sizes.at(one.number).at(one.position) = number_of(one.formula);
      any = true;
    }
    for (size_t i = 0; i < family_.value_sizes.size(); ++i) {
      const ValueSize& size = family_.value_sizes[i];
      if (size.value.node.get() != &example) continue;
      if (i >= value_sizes_.size()) lacks(size);
      sizes.at(size.value.index).at(size.axis) = value_sizes_[i];
      any = true;
    }
    return any;
  }

  static void take_sizes(const LazyTensors& results, std::vector<Dims>& sizes) {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (results.at(i)) sizes[i] = results[i].sizes();
  }

  static void infer_sizes(const Operation& operation, const Node& node, std::vector<Dims>& sizes) {
    const std::vector<Type> inferred = infer(operation, call_of(node, operation.schema));
    if (inferred.size() != sizes.size()) return;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (is_defined(inferred[i])) sizes[i] = inferred[i].sizes;
  }

  Region bound_region(const Region& region, const std::vector<Type>& types) const {
    return std::make_shared<const Graph>(Binder(family_, *region, value_sizes_).run(types).graph);
  }

  // A recorded body takes the operands that are there.
  void bind_regions(const Node& example, NodeSpec& spec) const {
    if (has_typed_regions(example)) {
      const std::vector<Type> types = types_for_regions(example.op(), spec);
      for (NamedAttribute& attribute : spec.attributes)
        if (const auto* region = attribute.value.get_if<Region>(); region != nullptr && *region)
          attribute.value = bound_region(*region, types);
    }
    for (NamedAttribute& attribute : spec.execution) {
      const auto* region = attribute.value.get_if<Region>();
      if (region == nullptr || *region == nullptr) continue;
      std::vector<Type> types;
      for (const LazyTensor& operand : spec.operands)
        if (operand) types.push_back(operand.type());
      if (types.size() != (*region)->inputs().size())
        throw UserError("[bind] " + place_of(example) + ": its region '" + attribute.name.str() +
                        "' does not take its operands");
      attribute.value = bound_region(*region, types);
    }
  }

  Graph::Parts parts() const {
    Graph::Parts parts;
    for (const LazyTensor& input : graph_.inputs()) parts.inputs.push_back(value(input));
    for (const LazyTensor& output : graph_.outputs()) parts.outputs.push_back(value(output));
    for (const auto& [target, result] : graph_.mutations())
      parts.mutations.push_back({value(target), value(result)});
    for (const NodePtr& effect : graph_.effects())
      parts.effects.push_back(*nodes_.find(effect.get()));
    return parts;
  }

  const Family& family_;
  const Graph& graph_;
  const std::vector<int64_t>& value_sizes_;
  const NumberOfUse number_of_;
  std::set<const Node*> written_;  // views that the program writes through
  std::map<const Node*, std::vector<const NumberUse*>> uses_;
  FlatMap<const Node*, LazyTensors> values_;
  FlatMap<const Node*, NodePtr> nodes_;
};

// The place of each node among all.
FlatMap<const Node*, size_t> places_in(const Graph& graph) {
  FlatMap<const Node*, size_t> places;
  for (size_t n = 0; n < graph.nodes().size(); ++n) places.insert(graph.nodes()[n].get(), n);
  return places;
}

// ---- inputs -------------------------------------------------------------------------------------

std::string names_of(const Family& family) {
  std::string names;
  for (const FreeSize& size : family.sizes) names += (names.empty() ? "" : ", ") + size.name;
  for (const ValueSize& size : family.value_sizes) names += (names.empty() ? "" : ", ") + size.name;
  return names.empty() ? "none" : names;
}

int64_t number_for(const FreeSize& size, const SizeValues& values) {
  const auto found = values.find(size.name);
  if (found == values.end())
    throw UserError("[bind] expected a number for the size '" + size.name + "'");
  return found->second;
}

void expect_shown(const FreeSize& size, const SizeValues& values) {
  const int64_t number = number_for(size, values);
  const std::string received = "[bind] " + size.name + " = " + std::to_string(number);
  if (number < size.low || number > size.high)
    throw UserError(received + ": shown from " + std::to_string(size.low) + " to " +
                    std::to_string(size.high) + "; add an example there");
  if ((number - size.low) % size.step != 0)
    throw UserError(received + ": all examples are " + std::to_string(size.low) +
                    " and a multiple of " + std::to_string(size.step) + "; add an example between");
}

// Dense in the example's order of axes.
Type resized(const Type& example, const Dims& sizes) {
  NodeSpec spec("composit::resized");
  spec.output(example);
  const NodePtr node = std::move(spec).make_node();
  return result_types(*node, *node, nullptr, {sizes})[0];
}

}  // namespace

bool has_typed_regions(const Node& node) {
  const Symbol op = node.op();
  return op == kCond || op == kWhile || op == kScan || op == kMap;
}

LazyTensor Binding::of(const LazyTensor& value) const {
  const LazyTensors* found = value ? values.find(value.node.get()) : nullptr;
  return found == nullptr ? LazyTensor() : found->at(value.index);
}

Binding bind_types(const Family& family, const std::vector<Type>& types,
                   const std::vector<int64_t>& value_sizes, const NumberOfUse& number_of) {
  return Binder(family, family.example, value_sizes, number_of).run(types);
}

Graph part_of(const Family& family, const LazyTensors& values) {
  LazyTensors outputs = values;
  for (;;) {
    const Graph part({.inputs = family.example.inputs(), .outputs = outputs});
    std::set<const Node*> inside;
    for (const NodePtr& node : part.nodes()) inside.insert(node.get());
    const size_t before = outputs.size();
    for (const NodePtr& node : part.nodes())
      for (const IntegerFormula& one : family.formulas_of(*node))
        one.formula.for_each_size([&](const LazyTensor& tensor, size_t) {
          if (inside.insert(tensor.node.get()).second) outputs.push_back(tensor);
        });
    if (outputs.size() == before) return part;
  }
}

Binding bind_part(const Family& family, const Graph& part, const std::vector<Type>& types,
                  const std::vector<int64_t>& value_sizes) {
  return Binder(family, part, value_sizes).run(types);
}

std::vector<int64_t> value_sizes_in(const Family& family, const Graph& graph) {
  const Graph plain = without_incidentals(graph);
  const FlatMap<const Node*, size_t> places = places_in(family.example);
  std::vector<int64_t> numbers;
  for (const ValueSize& size : family.value_sizes) {
    const size_t* place = places.find(size.value.node.get());
    const bool alike = place != nullptr && *place < plain.nodes().size() &&
                       plain.nodes()[*place]->op() == size.value.node->op();
    if (!alike)
      throw UserError("[bind] the graph has no " + place_of(*size.value.node) +
                      " where the family has one");
    numbers.push_back(plain.nodes()[*place]->outputs().at(size.value.index).sizes.at(size.axis));
  }
  return numbers;
}

NumberValues numbers_in(const Family& family, const Graph& graph) {
  NumberValues numbers;
  if (family.number_uses.empty()) return numbers;
  const Graph plain = without_incidentals(graph);
  const FlatMap<const Node*, size_t> places = places_in(family.example);
  for (const NumberUse& use : family.number_uses) {
    if (use.formula.kind() != NumberFormula::Kind::named) continue;
    const size_t place = *places.find(use.node.get());
    if (place >= plain.nodes().size()) continue;
    const Node& node = *plain.nodes()[place];
    const Attribute* attribute = node.find_attribute(use.key);
    if (attribute == nullptr) attribute = node.find_run(use.key);
    const auto number = attribute == nullptr ? std::nullopt : real_number_of(*attribute);
    if (number) numbers.emplace(use.formula.name(), *number);
  }
  return numbers;
}

std::vector<Type> types_at(const Family& family, const SizeValues& sizes) {
  std::vector<Dims> all;
  for (const LazyTensor& input : family.example.inputs()) all.push_back(input.sizes());
  for (const FreeSize& size : family.sizes)
    for (const InputAxis& axis : size.axes)
      all.at(axis.input).at(axis.axis) = number_for(size, sizes);
  std::vector<Type> types;
  for (size_t i = 0; i < all.size(); ++i) {
    const Type& example = family.example.inputs()[i].type();
    types.push_back(all[i] == example.sizes ? example : resized(example, all[i]));
  }
  return types;
}

bool is_within(const Family& family, const SizeValues& sizes) {
  return std::all_of(family.sizes.begin(), family.sizes.end(), [&](const FreeSize& size) {
    const auto found = sizes.find(size.name);
    if (found == sizes.end()) return false;
    const int64_t number = found->second;
    return number >= size.low && number <= size.high && (number - size.low) % size.step == 0;
  });
}

std::vector<Type> input_types(const Family& family, const SizeValues& sizes) {
  for (const auto& [name, number] : sizes) {
    bool known = false;
    for (const FreeSize& size : family.sizes) known = known || size.name == name;
    for (const ValueSize& size : family.value_sizes) known = known || size.name == name;
    if (!known)
      throw UserError("[bind] expected one of the sizes " + names_of(family) + ", received '" +
                      name + "'");
  }
  for (const FreeSize& size : family.sizes) expect_shown(size, sizes);
  return types_at(family, sizes);
}

SizeValues sizes_of_inputs(const Family& family, const std::vector<Type>& types) {
  SizeValues values;
  for (const FreeSize& size : family.sizes)
    for (const InputAxis& axis : size.axes) {
      const LazyTensor& input = family.example.inputs().at(axis.input);
      const Type& type = types.at(axis.input);
      if (type.rank() != input.type().rank())
        throw UserError("[bind] input '" + input_name(*input.node) + "': expected " +
                        std::to_string(input.type().rank()) + " axes, received " +
                        std::to_string(type.rank()));
      const int64_t number = type.sizes[axis.axis];
      const auto [known, added] = values.emplace(size.name, number);
      if (known->second != number)
        throw UserError("[bind] input '" + input_name(*input.node) + "', axis " +
                        std::to_string(axis.axis) + ": expected " + size.name + " = " +
                        std::to_string(known->second) + " as elsewhere, received " +
                        std::to_string(number));
    }
  return values;
}

void expect_inputs(const Family& family, const SizeValues& sizes, const std::vector<Type>& types) {
  const std::vector<Type> expected = input_types(family, sizes);
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i].sizes != expected[i].sizes || types[i].dtype != expected[i].dtype)
      throw UserError("[bind] input '" + input_name(*family.example.inputs()[i].node) +
                      "': expected " + print(expected[i]) + ", received " + print(types[i]));
}

void expect_numbers(const Family& family, const NumberValues& numbers) {
  const auto place_of_use = [&](const std::string& name) {
    for (const NumberUse& use : family.number_uses) {
      bool reads = false;
      use.formula.for_each_name([&](const std::string& one) { reads = reads || one == name; });
      if (reads) return ", for '" + use.key + "' of " + place_of(*use.node);
    }
    return std::string();
  };
  std::string names;
  for (const FreeNumber& number : family.numbers) {
    names += (names.empty() ? "" : ", ") + number.name;
    if (number.origin == NumberOrigin::read)
      throw UserError("[bind] '" + number.name + "' is read by the program" +
                      place_of_use(number.name) + ": only a call of the family knows it");
    if (!numbers.contains(number.name))
      throw UserError("[bind] expected a number '" + number.name + "'" + place_of_use(number.name));
    expect_kind(number, numbers.at(number.name));
  }
  for (const auto& [name, number] : numbers)
    if (std::none_of(family.numbers.begin(), family.numbers.end(),
                     [&name = name](const FreeNumber& one) { return one.name == name; }))
      throw UserError("[bind] expected one of the numbers " + (names.empty() ? "none" : names) +
                      ", received '" + name + "'");
}

Binding bind_sizes(const Family& family, const SizeValues& sizes, const NumberOfUse& number_of) {
  std::vector<int64_t> value_sizes;
  for (const ValueSize& size : family.value_sizes) {
    const auto found = sizes.find(size.name);
    if (found == sizes.end()) lacks(size);
    value_sizes.push_back(found->second);
  }
  return bind_types(family, input_types(family, sizes), value_sizes, number_of);
}

Graph bind(const Family& family, const SizeValues& sizes, const NumberValues& numbers) {
  expect_numbers(family, numbers);
  return bind_sizes(family, sizes,
                    [&](const NumberUse& use) {
                      return use.formula.evaluate(
                          [&](const std::string& name) { return numbers.at(name); });
                    })
      .graph;
}

}  // namespace composit
