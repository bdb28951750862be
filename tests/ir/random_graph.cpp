#include "tests/ir/random_graph.h"

#include <bit>
#include <cstdlib>
#include <limits>

#include "composit/ir/print.h"

namespace composit::test {
namespace {

// Keeps the memory of arrays alive.
Array array_of_bytes(const Type& type, std::mt19937_64& random) {
  const auto size = static_cast<size_t>(type.extent()) * item_size(type.dtype);
  auto bytes = std::make_shared<std::vector<unsigned char>>(size + 1);
  for (unsigned char& byte : *bytes)
    byte = random() % 4 == 0 ? 0 : static_cast<unsigned char>(random());
  const void* data = bytes->data();
  return Array(type, std::move(bytes), data);
}

}  // namespace

int64_t RandomGraph::number(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random_);
}

bool RandomGraph::chance(double probability) {
  return std::bernoulli_distribution(probability)(random_);
}

std::string RandomGraph::text() {
  static const std::vector<std::string> kTexts = {"",
                                                  "x",
                                                  "fc1.weight",
                                                  "layer.0.bias",
                                                  "a b",
                                                  "\"quoted\"",
                                                  "back\\slash",
                                                  "\n\t\r",
                                                  "main.cpp:12",
                                                  "none",
                                                  "\x01\x7f\xff",
                                                  "gr\xc3\xbc\xc3\x9f",
                                                  "x_1",
                                                  "#",
                                                  "a=b",
                                                  "%x",
                                                  "}",
                                                  "mutate",
                                                  "3",
                                                  "x_1_1",
                                                  "true"};
  return one_of(kTexts);
}

double RandomGraph::real() {
  static const std::vector<double> kReals = {0.0,
                                             -0.0,
                                             1.0,
                                             -1.5,
                                             0.1,
                                             1e-5,
                                             1e22,
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN(),
                                             std::numeric_limits<double>::denorm_min(),
                                             std::numeric_limits<double>::max()};
  return chance(0.5) ? one_of(kReals) : std::bit_cast<double>(random_());
}

Scalar RandomGraph::scalar() {
  const bool wrapped = chance(0.5);
  switch (number(0, 3)) {
    case 0:
      return Scalar(chance(0.5), wrapped);
    case 1:
      return Scalar(static_cast<int64_t>(random_()), wrapped);
    case 2:
      return Scalar(real(), wrapped);
    default:
      return Scalar(std::complex<double>(real(), real()), wrapped);
  }
}

// ---- types --------------------------------------------------------------------------------------

std::vector<int64_t> RandomGraph::strides(const Dims& sizes) {
  std::vector<int64_t> strides = contiguous_strides(sizes);
  if (chance(0.3)) std::shuffle(strides.begin(), strides.end(), random_);
  if (chance(0.2))
    for (int64_t& stride : strides) stride = number(0, 7);
  return strides;
}

Type RandomGraph::type() {
  if (chance(0.03)) return undefined_type();
  Dims sizes;
  for (int64_t rank = number(0, 4); rank > 0; --rank) sizes.emplace_back(number(0, 5));
  Type type = tensor_type(DType::float32, sizes);
  if (chance(0.5)) type.dtype = static_cast<DType>(number(0, static_cast<int>(DType::count_) - 1));
  type.strides = strides(sizes);
  type.conj = chance(0.03);
  type.neg = chance(0.03);
  if (chance(0.05))
    type.device = {static_cast<int8_t>(number(0, 20)), static_cast<int8_t>(number(-1, 127))};
  if (chance(0.05)) {
    type.layout = static_cast<Layout>(number(1, static_cast<int>(Layout::count_) - 1));
    type.strides.clear();
  }
  return type;
}

Array RandomGraph::array() {
  Type array_type = type();
  while (!is_defined(array_type) || array_type.layout != Layout::strided) array_type = type();
  array_type.device = {};
  return array_of_bytes(array_type, random_);
}

// ---- attributes ---------------------------------------------------------------------------------

List RandomGraph::list(int depth) {
  List list{static_cast<AttributeKind>(number(0, static_cast<int>(AttributeKind::array))), {}};
  const bool mixed = chance(0.2);
  const Attribute first = attribute(depth + 1);
  if (chance(0.7)) list.element = first.kind();
  for (int64_t size = number(0, 4); size > 0; --size) {
    Attribute item = chance(0.2) ? Attribute() : attribute(depth + 1);
    while (!mixed && !item.is_none() && item.kind() != first.kind()) item = attribute(depth + 1);
    list.items.push_back(std::move(item));
  }
  return list;
}

Attribute RandomGraph::attribute(int depth) {
  switch (number(0, depth < 3 ? 13 : 11)) {
    case 0:
      return {};
    case 1:
      return chance(0.5);
    case 2:
      return chance(0.9) ? number(-10, 1000) : static_cast<int64_t>(random_());
    case 3:
      return real();
    case 4:
      return std::complex<double>(real(), real());
    case 5:
      return text();
    case 6:
      return static_cast<DType>(number(0, static_cast<int>(DType::count_) - 1));
    case 7:
      return Device{static_cast<int8_t>(number(0, 20)), static_cast<int8_t>(number(-1, 127))};
    case 8:
      return static_cast<Layout>(number(0, static_cast<int>(Layout::count_) - 1));
    case 9:
      return static_cast<MemoryFormat>(number(0, static_cast<int>(MemoryFormat::count_) - 1));
    case 10:
      return Generator{text()};
    case 11:
      return scalar();
    case 12:
      return list(depth);
    default:
      return array();
  }
}

void RandomGraph::add_attributes(Attributes& attributes) {
  static const std::vector<std::string> kNames = {"dim", "alpha", "value",  "none", "a b",
                                                  "x.y", "name",  "mutate", "7",    "scope"};
  for (const std::string& name : kNames)
    if (chance(0.15)) attributes.push_back({Symbol(name), attribute()});
}

// ---- nodes --------------------------------------------------------------------------------------

LazyTensor RandomGraph::value(const Frame& frame) {
  return frame.values.empty() || chance(0.1) ? LazyTensor() : one_of(frame.values);
}

void RandomGraph::add_inputs(Frame& frame) {
  static const std::vector<std::string> kNames = {
      "x", "x.1", "x_1", "0", "fc1.weight", "", "a b", "gr\xc3\xbc\xc3\x9f", "relu"};
  for (const std::string& name : kNames) {
    if (!chance(0.3)) continue;
    const auto kind = frame.depth > 0 ? InputKind::block : static_cast<InputKind>(number(0, 3));
    NodeSpec spec(ops::kInput);
    spec.attribute("name", name).attribute("kind", std::string(composit::name(kind)));
    if (chance(0.2)) spec.attribute("requires_grad", true);
    add_annotations(spec);
    frame.parts.inputs.push_back(std::move(spec.output(type())).make());
    frame.values.push_back(frame.parts.inputs.back());
  }
}

void RandomGraph::add_annotations(NodeSpec& spec) {
  const auto last = static_cast<int64_t>(spec.operands.size()) - 1;
  while (chance(0.2)) {
    static const std::vector<std::string> kKeys = {"scope", "source", "note", "2.x", "a b", ""};
    spec.annotate(one_of(kKeys), text(), static_cast<int>(number(-1, last)));
  }
}

void RandomGraph::add_arguments(const Frame& frame, NodeSpec& spec) {
  for (int64_t count = number(0, 3); count > 0; --count) {
    if (chance(0.7)) {
      spec.tensor(value(frame));
      continue;
    }
    LazyTensors list;
    for (int64_t size = number(0, 3); size > 0; --size) list.push_back(value(frame));
    spec.list(list);
  }
}

void RandomGraph::add_node(Frame& frame) {
  static const std::vector<std::string> kOps = {"aten::relu", "aten::add.Tensor", "user::my_op",
                                                "aten::x_1",  "return",           "odd op",
                                                "no_domain",  "a::b::c.d.e",      "aten::max.dim"};
  NodeSpec spec(one_of(kOps));
  add_arguments(frame, spec);
  add_attributes(spec.attributes);
  add_attributes(spec.execution);
  for (int64_t count = number(0, 3); count > 0; --count) spec.output(type());
  bool effect = spec.outputs.empty() || chance(0.1);
  if (frame.depth < 3 && chance(0.15)) {
    const Region body = body_of(spec, frame.depth + 1);
    effect = effect || !body->effects().empty();
    spec.run("body", body);
  }
  if (frame.depth < 3 && chance(0.05)) {
    const auto region = std::make_shared<const Graph>(graph(frame.depth + 1));
    effect = effect || !region->effects().empty();
    spec.attribute("else", region);
  }
  if (effect) spec.run("effect", frame.next_effect += number(1, 3));
  add_annotations(spec);
  const NodePtr node = std::move(spec).make_node();
  if (effect) frame.parts.effects.push_back(node);
  for (uint32_t i = 0; i < node->outputs().size(); ++i) frame.values.push_back({node, i});
}

void RandomGraph::add_constant(Frame& frame) {
  frame.values.push_back(constant(array(), chance(0.5) ? text() : ""));
}

void RandomGraph::add_mutation(Frame& frame) {
  const LazyTensor target = one_of(frame.parts.inputs);
  NodeSpec spec("aten::copy");
  Type result = target.type();
  if (is_defined(result) && result.layout == Layout::strided)
    result.strides = strides(result.sizes);
  spec.tensor(target).output(result);
  frame.parts.mutations.push_back({target, std::move(spec).make()});
}

// ---- graphs -------------------------------------------------------------------------------------

// A region as captured composites have one: with the node's operands and outputs.
Region RandomGraph::body_of(const NodeSpec& spec, int depth) {
  Frame frame;
  frame.depth = depth;
  for (const LazyTensor& operand : spec.operands)
    if (operand) {
      const std::string name = std::to_string(frame.parts.inputs.size());
      frame.parts.inputs.push_back(input(name, operand.type(), InputKind::block));
    }
  frame.values = frame.parts.inputs;
  for (int64_t count = number(0, 3); count > 0; --count) add_node(frame);
  for (const Type& output : spec.outputs) {
    NodeSpec last("aten::native");
    last.tensor(value(frame)).output(output);
    const bool absent = output == undefined_type() && chance(0.5);
    frame.parts.outputs.push_back(absent ? LazyTensor() : std::move(last).make());
  }
  return std::make_shared<const Graph>(std::move(frame.parts));
}

Graph RandomGraph::graph(int depth) {
  Frame frame;
  frame.depth = depth;
  add_inputs(frame);
  for (int64_t count = number(0, depth > 0 ? 4 : 15); count > 0; --count)
    chance(0.1) ? add_constant(frame) : add_node(frame);
  for (int64_t count = number(0, 4); count > 0; --count)
    frame.parts.outputs.push_back(value(frame));
  if (!frame.parts.inputs.empty() && chance(0.3)) add_mutation(frame);
  return Graph(std::move(frame.parts));
}

Graph RandomGraph::make() { return graph(0); }

uint64_t fuzz_runs(uint64_t usual) {
  const char* runs = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS");
  return runs == nullptr ? usual : std::strtoull(runs, nullptr, 10);
}

}  // namespace composit::test
