#include "tracer/plan.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Version.h>

#include <algorithm>
#include <unordered_map>

#include "composit/ir/error.h"
#include "composit/ops/operations.h"
#include "tracer/control_flow.h"
#include "tracer/convert.h"

namespace flashlight::tracer {
namespace {

using composit::Attribute;
using composit::LazyTensor;
using composit::Node;
using composit::NodePtr;
using composit::Symbol;
using composit::UserError;

bool flag(const Node& node, const char* name, bool otherwise) {
  const Attribute* value = node.find_run(name);
  return value ? value->as<bool>() : otherwise;
}

class Planner {
 public:
  Planner(Plan::Impl& plan, const PlanOptions& options) : plan_(plan), options_(options) {
    for (const NodePtr& node : plan.graph.nodes()) add(root_, node);
    for (const LazyTensor& input : plan.graph.inputs()) plan.inputs.push_back(slot(root_, input));
    for (const LazyTensor& output : plan.graph.outputs())
      plan.outputs.push_back(slot(root_, output));
    for (const composit::Mutation& mutation : plan.graph.mutations())
      plan.mutations.push_back(
          {index_of_input(mutation.target), slot(root_, mutation.value), true});
    expect_all_numbers();
    plan.memory = InputMemory(plan.graph);
    plan.storages = used_storages(plan.graph);
    find_last_uses();
    find_steady_steps();
    plan.made_by.assign(plan.initial.size(), {plan.steps.size(), 0});
    for (size_t step = 0; step < plan.steps.size(); ++step)
      for (size_t i = 0; i < plan.steps[step].outputs.size(); ++i)
        plan.made_by[plan.steps[step].outputs[i]] = {step, i};
  }

 private:
  // Slots of the nodes of one region; a region runs inline.
  using Frame = std::unordered_map<const Node*, std::vector<Slot>>;

  Slot fresh() {
    plan_.initial.emplace_back();
    return static_cast<Slot>(plan_.initial.size() - 1);
  }
  static Slot slot(const Frame& frame, const LazyTensor& value) {
    return value ? frame.at(value.node.get())[value.index] : kNoSlot;
  }
  size_t index_of_input(const LazyTensor& target) const {
    const auto& inputs = plan_.graph.inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].node == target.node) return i;
    throw UserError("[replay] the graph writes '" + input_name(*target.node) +
                    "', which is not one of its inputs");
  }

  void add(Frame& frame, const NodePtr& node) {
    auto& slots = frame[node.get()];
    if (const Attribute* body = node->find_run("body")) {
      slots = add_region(frame, *node, *body->as<composit::Region>());
      return;
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) slots.push_back(fresh());
    if (is_input(*node)) return;
    if (node->op() == composit::ops::kConstant) {
      plan_.initial[slots[0]] = constant(*node);
      for (size_t i = 0; i < plan_.numbers.size(); ++i)
        if (plan_.numbers[i].node == node.get()) {
          plan_.changing_constants.emplace_back(slots[0], i);
          numbers_found_.push_back(i);
        }
      return;
    }
    Step step;
    step.node = node;
    step.outputs = slots;
    step.grad = flag(*node, "grad", options_.grad);
    step.throws = flag(*node, "throws", false);
    if (!add_memory_operation(frame, step) && !add_control_flow(frame, step) &&
        !add_definition(frame, step))
      add_operator(frame, step);
    add_numbers(frame, step);
    plan_.steps.push_back(std::move(step));
  }

  std::vector<Slot> add_region(const Frame& outer, const Node& node, const composit::Graph& body) {
    if (body.inputs().size() != present_operands(node))
      throw UserError("[" + node.op().str() +
                      "] its region has another number of inputs than the node has operands");
    Frame inner;
    size_t block = 0;
    for (const LazyTensor& operand : node.operands())
      if (operand && block < body.inputs().size())
        inner[body.inputs()[block++].node.get()] = {slot(outer, operand)};
    for (const NodePtr& inside : body.nodes())
      if (!is_input(*inside)) add(inner, inside);
    std::vector<Slot> results;
    for (const LazyTensor& output : body.outputs())
      results.push_back(output ? slot(inner, output) : fresh());
    return results;
  }
  static size_t present_operands(const Node& node) {
    size_t count = 0;
    for (const LazyTensor& operand : node.operands()) count += operand ? 1 : 0;
    return count;
  }

  static at::Tensor constant(const Node& node) {
    const Attribute& value = node.attribute("value");
    if (const auto* opaque = value.get_if<composit::Opaque>())
      return static_cast<const c10::IValue*>(opaque->object.get())->toTensor();
    at::Tensor tensor = to_tensor(value.as<composit::Array>());
    if (node.find_attribute("wrapped")) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

  // ---- operations on memory ---------------------------------------------------------------------

  // Adds a step for this project's own memory operations, and for ATen's scatters, which run in
  // place if possible.
  bool add_memory_operation(const Frame& frame, Step& step) {
    const Node& node = *step.node;
    static const std::unordered_map<std::string, StepKind> kinds = {
        {"aten::as_strided", StepKind::memory_view},
        {"composit::storage_view", StepKind::memory_view},
        {"aten::as_strided_scatter", StepKind::memory_scatter},
        {"composit::storage_scatter", StepKind::memory_scatter},
        {"aten::select_scatter", StepKind::scatter},
        {"aten::slice_scatter", StepKind::scatter},
        {"aten::diagonal_scatter", StepKind::scatter},
        {"composit::storage", StepKind::storage},
        {"composit::storage_zeros", StepKind::storage_zeros},
        {"composit::storage_resize", StepKind::storage_resize},
        {"composit::set_generator_state", StepKind::set_generator},
        {"composit::generator_state", StepKind::generator_state},
        {"composit::restore_generator_state", StepKind::restore_generator}};
    const auto kind = kinds.find(node.op().str());
    if (kind == kinds.end() || step.throws || node.find_run("via") || node.find_run("views"))
      return false;
    step.kind = kind->second;
    add_operands(frame, step);
    if (step.kind == StepKind::memory_view || step.kind == StepKind::memory_scatter) {
      const composit::Type& type =
          step.kind == StepKind::memory_view ? node.outputs()[0] : node.operands().at(1).type();
      step.view = {0,
                   0,
                   to_c10(type.dtype),
                   to_ints(node.attribute("size")),
                   to_ints(node.attribute("stride")),
                   node.attribute("storage_offset").as_int(),
                   type.conj,
                   type.neg};
    }
    if (step.kind == StepKind::scatter) add_view_of_scatter(step);
    add_generator(step);
    return true;
  }

  void add_generator(Step& step) {
    const bool sets =
        step.kind == StepKind::set_generator || step.kind == StepKind::restore_generator;
    if (!sets && step.kind != StepKind::generator_state) return;
    const std::string& role = step.node->attribute("generator").as<composit::Generator>().role;
    if (sets && role != "default" && options_.generators.count(role) == 0)
      own_generators_.emplace(role, at::make_generator<at::CPUGeneratorImpl>());
    step.generator = generator(role);
    if (step.kind == StepKind::set_generator)
      step.state = to_tensor(step.node->attribute("state").as<composit::Array>());
  }

  // `select_scatter(x, v, dim, index)` is done as `select(x, dim, index).copy_(v)`.
  void add_view_of_scatter(Step& step) {
    static const std::unordered_map<std::string, const char*> views = {
        {"aten::select_scatter", "aten::select.int"},
        {"aten::slice_scatter", "aten::slice.Tensor"},
        {"aten::diagonal_scatter", "aten::diagonal"}};
    step.op = &find(views.at(step.node->op().str()));
    const auto& arguments = step.op->schema->arguments();
    for (size_t i = 1; i < arguments.size(); ++i)
      step.attributes.push_back(
          to_ivalue(step.node->attribute(arguments[i].name()), arguments[i].real_type(), nullptr));
  }

  at::Generator generator(const std::string& role) const {
    if (role == "default") return at::globalContext().defaultGenerator(c10::kCPU);
    if (const auto given = options_.generators.find(role); given != options_.generators.end())
      return given->second;
    // One that died in the scope: the graph sets its state before the first draw.
    if (const auto own = own_generators_.find(role); own != own_generators_.end())
      return own->second;
    throw UserError("[replay] no generator is given for '" + role + "'");
  }

  // ---- operators --------------------------------------------------------------------------------

  static void add_operands(const Frame& frame, Step& step) {
    for (const LazyTensor& operand : step.node->operands()) {
      StepArgument argument;
      argument.kind = StepArgument::Kind::tensor;
      argument.slots = {slot(frame, operand)};
      step.arguments.push_back(std::move(argument));
    }
  }

  bool add_control_flow(const Frame& frame, Step& step) {
    if (!ControlFlow::is(*step.node)) return false;
    step.kind = StepKind::control;
    step.control_flow = std::make_shared<const ControlFlow>(*step.node, options_);
    add_operands(frame, step);
    return true;
  }

  bool add_definition(const Frame& frame, Step& step) {
    const Node& node = *step.node;
    if (node.op().domain() == "aten" || find_op(node.op().str()) != nullptr ||
        composit::find_operation(node.op()) == nullptr)
      return false;
    step.kind = StepKind::definition;
    add_operands(frame, step);
    return true;
  }

  static const OpInfo& find(const std::string& name) {
    if (const OpInfo* op = find_op(name)) return *op;
    throw UserError("[replay] this LibTorch has no operator '" + name +
                    "'; load the library that defines it before the capture");
  }

  // As OpInfo::of_call.
  static const OpInfo& of_node(const OpInfo& op, const Node& node) {
    if (const Attribute* writes = node.find_run("writes")) return op.writing(to_ints(*writes));
    if (!op.write_switch) return op;
    const Attribute* on = node.find_attribute(op.argument_names[*op.write_switch].str());
    return on != nullptr && !on->as<bool>() ? *op.switched_off : op;
  }

  // LibTorch would read a weight that was packed for another processor as other numbers.
  static void expect_processor(const Node& node) {
    const Attribute* packed_for = node.find_run("packed_for");
    if (packed_for == nullptr || packed_for->as<std::string>() == at::get_cpu_capability()) return;
    throw UserError("[replay] " + place_of(node) + " reads or packs a weight of 4 bits for " +
                    packed_for->as<std::string>() + "; this LibTorch runs kernels for " +
                    at::get_cpu_capability() +
                    ", where it lies in another way: capture the program here, or compile it");
  }

  void add_operator(const Frame& frame, Step& step) {
    const Node& node = *step.node;
    const Attribute* via = options_.autograd ? nullptr : node.find_run("via");
    step.op = &of_node(find(via ? via->as<std::string>() : node.op().str()), node);
    if (step.op->packed) expect_processor(node);
    const auto& arguments = step.op->schema->arguments();
    size_t next = 0;  // of the node's tensor arguments
    for (size_t i = 0; i < arguments.size(); ++i) {
      StepArgument argument;
      argument.written = step.op->writes[i];
      if (step.op->arguments[i] == ArgumentKind::other)
        argument.value = attribute_value(node, arguments[i]);
      else if (via && step.op->out[i])
        argument.kind = StepArgument::Kind::out;
      else
        take_operands(frame, node, next++, argument);
      argument.optional_list = is_optional_list(*arguments[i].type());
      step.arguments.push_back(std::move(argument));
    }
    if (next != node.arguments().size())
      throw UserError("[replay] " + place_of(node) + " has " +
                      std::to_string(node.arguments().size()) + " tensor arguments; LibTorch's " +
                      step.op->name.str() + " takes " + std::to_string(next));
    if (const Attribute* views = node.find_run("views"))
      add_views(step, views->as<composit::List>());
    if (const Attribute* expected = node.find_run("expected")) {
      step.guards = true;
      for (const Attribute& number : expected->as<composit::List>().items)
        step.expected.push_back(to_c10(number.as<composit::Scalar>()));
    }
  }

  void add_numbers(const Frame& frame, Step& step) {
    for (const auto& [constant, number] : plan_.changing_constants)
      for (const StepArgument& argument : step.arguments)
        if (std::count(argument.slots.begin(), argument.slots.end(), constant) > 0 &&
            add_reads(frame, step, number))
          step.constants_read.emplace_back(constant, number);
    if (step.kind != StepKind::op && step.kind != StepKind::scatter) return;
    for (size_t number = 0; number < plan_.numbers.size(); ++number) {
      const ChangingNumber& changing = plan_.numbers[number];
      if (changing.node != step.node.get()) continue;
      const auto& arguments = step.op->schema->arguments();
      const composit::NumberKey key(changing.key);
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].name() != key.name) continue;
        step.numbers.push_back({i, number, key.element});
        numbers_found_.push_back(number);
        add_reads(frame, step, number);
      }
    }
  }
  // False: the number reads nothing.
  bool add_reads(const Frame& frame, Step& step, size_t number) {
    for (const auto& [name, value] : plan_.numbers[number].reads) {
      const auto inside = frame.find(value.node.get());
      const auto made = inside == frame.end() ? root_.find(value.node.get()) : inside;
      if (inside == frame.end() && made == root_.end())
        throw UserError("[replay] '" + plan_.numbers[number].key + "' of " + place_of(*step.node) +
                        " follows from '" + name + "', which the program read elsewhere");
      step.reads.push_back(made->second.at(value.index));
      plan_.reads[number][name] = step.reads.back();
    }
    return !plan_.numbers[number].reads.empty();
  }
  void expect_all_numbers() {
    for (size_t number = 0; number < plan_.numbers.size(); ++number)
      if (std::count(numbers_found_.begin(), numbers_found_.end(), number) != 1)
        throw UserError("[replay] '" + plan_.numbers[number].key + "' of " +
                        place_of(*plan_.numbers[number].node) +
                        " cannot change: it says where in memory a value lies, or is inside a "
                        "branch or loop");
  }

  c10::IValue attribute_value(const Node& node, const c10::Argument& argument) const {
    const Attribute* value = node.find_attribute(argument.name());
    if (value == nullptr)
      throw UserError("[replay] " + place_of(node) + " lacks the argument '" + argument.name() +
                      "'");
    return to_ivalue(*value, argument.real_type(),
                     [this](const std::string& role) { return generator(role); });
  }

  static bool is_optional_list(const c10::Type& type) {
    const auto list = type.cast<c10::ListType>();
    return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
  }

  static void take_operands(const Frame& frame, const Node& node, size_t index,
                            StepArgument& argument) {
    if (index >= node.arguments().size())
      throw UserError("[replay] " + place_of(node) + " has too few tensor arguments");
    const composit::Argument& from = node.arguments()[index];
    const bool list = from.kind == composit::Argument::Kind::list;
    argument.kind = list ? StepArgument::Kind::list : StepArgument::Kind::tensor;
    argument.position = from.begin;
    for (uint32_t i = from.begin; i < from.begin + from.size; ++i)
      argument.slots.push_back(slot(frame, node.operands()[i]));
    if (from.kind == composit::Argument::Kind::absent) argument.kind = StepArgument::Kind::value;
  }

  static void add_views(Step& step, const composit::List& views) {
    for (const Attribute& view : views.items) {
      const auto& fields = view.as<composit::List>().items;
      if (fields.size() != 8)
        throw UserError("[replay] " + place_of(*step.node) + ": 'views' expects eight fields");
      step.views.push_back(
          {static_cast<uint32_t>(fields[0].as_int()), static_cast<uint32_t>(fields[1].as_int()),
           to_c10(fields[2].as<composit::DType>()), to_ints(fields[3]), to_ints(fields[4]),
           fields[5].as_int(), fields[6].as<bool>(), fields[7].as<bool>()});
    }
  }

  // ---- lifetimes --------------------------------------------------------------------------------

  void find_last_uses() {
    std::vector<bool> needed(plan_.initial.size(), false);
    for (Slot output : plan_.outputs)
      if (output != kNoSlot) needed[output] = true;
    for (const auto& mutation : plan_.mutations) needed[mutation.value] = true;
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      for (Slot output : step->outputs)
        if (!needed[output]) step->unused.push_back(output);
      const auto use = [&](Slot operand) {
        if (operand == kNoSlot || needed[operand]) return;
        needed[operand] = true;
        step->last_uses.push_back(operand);
      };
      for (const StepArgument& argument : step->arguments)
        for (const Slot operand : argument.slots) use(operand);
      for (const Slot operand : step->reads) use(operand);
    }
  }

  static bool is_steady(const Step& step) {
    if (step.kind == StepKind::definition || step.kind == StepKind::control) return false;
    if (step.kind != StepKind::op) return true;
    return step.op->steady && !step.guards && !step.throws && step.reads.empty();
  }
  void find_steady_steps() {
    for (auto& mutation : plan_.mutations) mutation.alone = !plan_.memory.is_shared(mutation.input);
    plan_.steady_from = plan_.steps.size();
    while (plan_.steady_from > 0 && is_steady(plan_.steps[plan_.steady_from - 1]))
      --plan_.steady_from;
  }

  Plan::Impl& plan_;
  const PlanOptions& options_;
  std::map<std::string, at::Generator> own_generators_;
  std::vector<size_t> numbers_found_;
  Frame root_;  // of the graph itself, around all regions
};

}  // namespace

Plan::Plan(const composit::Graph& graph, PlanOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->graph = graph;
  impl_->pin_strides = options.pin_strides;
  impl_->autograd = options.autograd;
  impl_->as_program = options.as_program;
  impl_->pin_types = options.pin_types;
  impl_->numbers = options.numbers;
  impl_->reads.resize(options.numbers.size());
  impl_->region = options.region;
  Planner(*impl_, options);
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
size_t Plan::size() const { return impl_->steps.size(); }

std::vector<Plan::Source> Plan::sources(size_t step) const {
  std::vector<Source> sources;
  for (const StepArgument& argument : impl_->steps.at(step).arguments)
    for (Slot slot : argument.slots)
      if (slot != kNoSlot && impl_->made_by[slot].step < step)
        sources.push_back(impl_->made_by[slot]);
  return sources;
}

std::string place_of(const Node& node) {
  std::string place = node.op().str();
  if (const auto scope = node.annotation("scope"); !scope.empty())
    place += " in " + std::string(scope);
  if (const auto source = node.annotation("source"); !source.empty())
    place += " (" + std::string(source) + ")";
  return place;
}

std::vector<UsedStorage> used_storages(const composit::Graph& graph) {
  std::vector<UsedStorage> uses;
  for (const NodePtr& node : graph.nodes()) {
    if (node->op().str() != "composit::storage") continue;
    const Attribute* begin = node->find_attribute("begin");
    for (size_t i = 0; begin != nullptr && i < graph.inputs().size(); ++i)
      if (graph.inputs()[i].node == node->operands().at(0).node)
        uses.push_back({node.get(), i, begin->as_int(), node->outputs()[0].sizes[0]});
  }
  return uses;
}

}  // namespace flashlight::tracer
