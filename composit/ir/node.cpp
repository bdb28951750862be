#include "composit/ir/node.h"

#include <algorithm>
#include <array>

#include "composit/ir/annotation_scope.h"
#include "composit/ir/error.h"
#include "composit/ir/graph.h"

namespace composit {
namespace {

std::atomic<uint64_t> next_serial{1};

void add_attributes(Hasher& hasher, const Attributes& attributes) {
  hasher.add(static_cast<uint64_t>(attributes.size()));
  for (const auto& [name, value] : attributes) {
    hasher.add(std::string_view(name.str()));
    value.add_to(hasher);
  }
}

// Operands whose last owner died on this thread, to be released one by one instead of by recursion.
thread_local LazyTensors* dying_operands = nullptr;
thread_local const Node* annotation_source = nullptr;

}  // namespace

const Type& LazyTensor::type() const {
  COMPOSIT_ASSERT(node && index < node->outputs().size(), "type of an absent tensor");
  return node->outputs()[index];
}

int64_t LazyTensor::size(int64_t axis) const {
  return sizes().at(static_cast<size_t>(wrap_axis(axis, rank())));
}

Graph LazyTensor::graph() const { return Graph({.outputs = {*this}}); }

Hash LazyTensor::hash() const {
  Hasher hasher;
  if (node) hasher.add(node->hash());
  hasher.add(node ? index + uint64_t{1} : 0);
  return hasher.finish();
}

bool LazyTensor::operator==(const LazyTensor& other) const {
  return index == other.index && (node == other.node || hash() == other.hash());
}

NodeSpec& NodeSpec::tensor(LazyTensor operand) {
  const auto begin = static_cast<uint32_t>(operands.size());
  if (!operand) {
    arguments.push_back({Argument::Kind::absent, begin, 0});
    return *this;
  }
  arguments.push_back({Argument::Kind::tensor, begin, 1});
  operands.push_back(std::move(operand));
  return *this;
}

NodeSpec& NodeSpec::list(const LazyTensors& items) {
  arguments.push_back({Argument::Kind::list, static_cast<uint32_t>(operands.size()),
                       static_cast<uint32_t>(items.size())});
  operands.insert(operands.end(), items.begin(), items.end());
  return *this;
}

NodeSpec& NodeSpec::attribute(std::string_view name, Attribute value) {
  attributes.push_back({Symbol(name), std::move(value)});
  return *this;
}

NodeSpec& NodeSpec::run(std::string_view name, Attribute value) {
  execution.push_back({Symbol(name), std::move(value)});
  return *this;
}

NodeSpec& NodeSpec::annotate(std::string_view key, std::string value, int operand) {
  annotations.push_back({Symbol(key), std::move(value), operand});
  return *this;
}

NodeSpec& NodeSpec::output(Type type) {
  outputs.push_back(std::move(type));
  return *this;
}

AnnotationScope::AnnotationScope(const Node& node)
    : outer_(std::exchange(annotation_source, &node)) {}
AnnotationScope::~AnnotationScope() { annotation_source = outer_; }

// Adds the annotations of the current AnnotationScope to a new node.
static void take_annotations(NodeSpec& spec) {
  if (annotation_source == nullptr || spec.op == ops::kInput || spec.op == ops::kConstant) return;
  for (const Annotation& annotation : annotation_source->annotations()) {
    const bool place = annotation.key.str() == "scope" || annotation.key.str() == "source";
    const bool has = std::any_of(spec.annotations.begin(), spec.annotations.end(),
                                 [&](const Annotation& own) { return own.key == annotation.key; });
    if (place && !has && annotation.operand < 0) spec.annotations.push_back(annotation);
  }
}

NodePtr NodeSpec::make_node() { return std::make_shared<const Node>(std::move(*this)); }

LazyTensor NodeSpec::make() {
  COMPOSIT_ASSERT(!outputs.empty(), "'" + op.str() + "' has no output");
  return {std::move(*this).make_node(), 0};
}

Node::Node(NodeSpec&& spec)
    : spec_(std::move(spec)), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {
  take_annotations(spec_);
  uint64_t& place = spec_.place;
  if (place == 0) {
    place = serial_;
    return;
  }
  for (const LazyTensor& operand : spec_.operands)
    if (operand) place = std::max(place, operand.node->place());
}

Node::~Node() {
  auto& operands = spec_.operands;
  if (dying_operands != nullptr) {
    for (LazyTensor& operand : operands) dying_operands->push_back(std::move(operand));
    return;
  }
  LazyTensors pending = std::move(operands);
  dying_operands = &pending;
  while (!pending.empty()) {
    const LazyTensor last = std::move(pending.back());
    pending.pop_back();
  }
  dying_operands = nullptr;
}

const Attribute& Node::attribute(std::string_view name) const {
  if (const Attribute* value = find_attribute(name)) return *value;
  throw UserError("[" + op().str() + "] has no attribute '" + std::string(name) + "'");
}

std::string_view Node::annotation(std::string_view key) const {
  const Symbol symbol(key);
  for (const Annotation& annotation : annotations())
    if (annotation.operand < 0 && annotation.key == symbol) return annotation.value;
  return {};
}

int64_t Node::effect() const {
  static const Symbol key("effect");
  const Attribute* place = find(execution(), key);
  return place ? place->as_int() : -1;
}

Hash Node::hash() const {
  std::vector<const Node*> stack{this};
  while (!stack.empty()) {
    const Node* node = stack.back();
    const size_t depth = stack.size();
    if (!node->hashed_.load(std::memory_order_acquire)) {
      for (const LazyTensor& operand : node->operands())
        if (operand.node && !operand.node->hashed_.load(std::memory_order_acquire))
          stack.push_back(operand.node.get());
      if (stack.size() > depth) continue;  // operands first
      const Hash hash = node->compute_hash();
      node->hash_low_.store(hash.low, std::memory_order_relaxed);
      node->hash_high_.store(hash.high, std::memory_order_relaxed);
      node->hashed_.store(true, std::memory_order_release);
    }
    stack.pop_back();
  }
  return {hash_low_.load(std::memory_order_relaxed), hash_high_.load(std::memory_order_relaxed)};
}

// Operands are hashed already.
Hash Node::compute_hash() const {
  Hasher hasher;
  hasher.add(std::string_view(op().str()));
  hasher.add(static_cast<uint64_t>(arguments().size()));
  for (const Argument& argument : arguments())
    hasher.add(static_cast<uint64_t>(argument.kind) | static_cast<uint64_t>(argument.size) << 8);
  for (const LazyTensor& operand : operands()) hasher.add(operand.hash());
  add_attributes(hasher, attributes());
  add_attributes(hasher, execution());
  hasher.add(static_cast<uint64_t>(outputs().size()));
  for (const Type& type : outputs()) type.add_to(hasher);
  return hasher.finish();
}

namespace {
constexpr std::array<std::string_view, 4> kInputKinds = {"user_input", "parameter", "buffer",
                                                         "block"};
}

std::string_view name(InputKind kind) { return kInputKinds.at(static_cast<size_t>(kind)); }

std::optional<InputKind> input_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < kInputKinds.size(); ++i)
    if (kInputKinds[i] == name) return static_cast<InputKind>(i);
  return std::nullopt;
}

namespace {
NodeSpec input_spec(std::string name, Type type, InputKind kind) {
  static const Symbol name_key("name"), kind_key("kind");
  NodeSpec spec(ops::kInput);
  spec.attributes.reserve(2);
  spec.attributes.push_back({name_key, std::move(name)});
  spec.attributes.push_back({kind_key, std::string(composit::name(kind))});
  spec.output(std::move(type));
  return spec;
}
}  // namespace

LazyTensor input(std::string name, Type type, InputKind kind) {
  return input_spec(std::move(name), std::move(type), kind).make();
}

LazyTensor held_input(std::string name, Array value, InputKind kind) {
  NodeSpec spec =
      input_spec(std::move(name), tensor_type(value.type().dtype, value.type().sizes), kind);
  spec.held = std::move(value);
  return std::move(spec).make();
}

LazyTensor constant(Array value, std::string name) {
  Type type = value.type();
  NodeSpec spec(ops::kConstant);
  spec.attribute("value", std::move(value)).output(std::move(type));
  if (!name.empty()) spec.annotate("name", std::move(name));
  return std::move(spec).make();
}

bool is_input(const Node& node) { return node.op() == ops::kInput; }

InputKind input_kind(const Node& node) {
  const auto& text = node.attribute("kind").as<std::string>();
  if (const auto kind = input_kind_from_name(text)) return *kind;
  throw UserError("[composit::input] unknown kind '" + text + "'");
}

const std::string& input_name(const Node& node) { return node.attribute("name").as<std::string>(); }

}  // namespace composit
