// Nodes and the tensors they make: the immutable, persistent graph.
//
//   LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
//   LazyTensor y = NodeSpec("aten::relu").tensor(x).output(x.type()).make();
//   y.graph().size() == 2;
//
// Meaning of the IR
//   * A node is an operation applied to tensors (its operands) and attributes. It is pure: its
//     outputs depend on nothing else. What is not pure (a random draw, a guard, an assert) carries
//     its place in the effect order as `effect`, and runs exactly once, in that order, whether or
//     not its outputs are used.
//   * Evaluation order is free but for effects and operands. `Graph::nodes` uses the order of
//     creation.
//   * Element arithmetic is that of ATen's CPU kernels in the dtype of the output: IEEE 754 with
//     NaN and signed zero kept, round to nearest; integers wrap; integer division rounds as the
//     op's attribute says; promotion is torch's
//     (https://pytorch.org/docs/stable/tensor_attributes.html) and has already happened: types are
//     stored, not derived.
//   * A tensor's type includes its strides. Two outputs never share memory as far as the graph can
//     tell: a write through a view is a new value.
//   * `execution` says how LibTorch ran a captured node (the in-place op it used, grad mode, place
//     in the effect order, value a guard expects). It is data like the attributes and part of
//     identity.
//
// Identity is structural: `hash()` covers operation, arguments, all attribute values, types and the
// operands' hashes. Teardown and traversal are iterative: a chain of a million nodes is ordinary.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/attribute.h"
#include "composit/ir/symbol.h"
#include "composit/ir/type.h"

namespace composit {

class Node;
class Graph;
// Nodes are shared and immutable.
using NodePtr = std::shared_ptr<const Node>;

// Output `index` of `node`: a value to be computed. Default-constructed: an absent optional tensor.
//
// This is the only class for a value of the graph: graphs, rules, derivatives and composit::nn pass
// it around. Functions and operators on it (composit/ops/functions.h) have ATen's names and dtype
// rules. NumPy's dtype rules differ, and the type of the operands has to say which rules hold, so
// composit::numpy derives NdArray from it; there is no third class.
struct LazyTensor {
  NodePtr node;        // null: absent
  uint32_t index = 0;  // which output of the node

  bool defined() const { return node != nullptr; }      // false: absent
  explicit operator bool() const { return defined(); }  // the same
  // The members below need a tensor that is defined; InternalError otherwise.
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  int64_t rank() const { return static_cast<int64_t>(type().rank()); }  // number of axes
  int64_t numel() const { return type().numel(); }                      // number of elements
  // The size of an axis; a negative axis counts from the end. UserError for an axis out of range.
  int64_t size(int64_t axis) const;
  const Dims& sizes() const { return type().sizes; }  // sizes of all axes

  Graph graph() const;                             // all nodes that lead to this value
  Hash hash() const;                               // made of the node's hash and the index
  bool operator==(const LazyTensor& other) const;  // structural
};

// Some may be absent.
using LazyTensors = std::vector<LazyTensor>;
// A function from tensors to tensors that makes nodes.
using TensorFunction = std::function<LazyTensors(const LazyTensors& inputs)>;

// One tensor-valued argument in the order of the schema: a tensor, an absent optional tensor, or a
// list of such.
struct Argument {
  // The kinds of tensor-valued argument.
  enum class Kind : uint8_t { tensor, absent, list };
  Kind kind = Kind::tensor;  // of this one
  uint32_t begin = 0;        // range of the node's operands
  uint32_t size = 0;         // 1, 0, or the length of the list
  bool operator==(const Argument&) const = default;
};

// A remark that is no part of identity: module scope, source line, or any text that a user attaches
// to a node or to the edge that brings operand `operand` (-1: on the node).
struct Annotation {
  Symbol key;         // "scope", "source", or a user's word
  std::string value;  // any text
  int operand = -1;   // the operand that it is about; -1: the node
  bool operator==(const Annotation&) const = default;
};

// A node under construction. Build mutably, publish immutably.
struct NodeSpec {
  // The start of a node of this operation: "aten::add.Tensor".
  explicit NodeSpec(Symbol op) : op(op) {}
  explicit NodeSpec(std::string_view op) : op(op) {}

  NodeSpec& tensor(LazyTensor operand);      // an absent one when `operand` is empty
  NodeSpec& list(const LazyTensors& items);  // items may be empty
  NodeSpec& attribute(std::string_view name, Attribute value);  // in the order of the schema
  NodeSpec& run(std::string_view name, Attribute value);        // adds to `execution`
  NodeSpec& annotate(std::string_view key, std::string value, int operand = -1);  // a remark
  NodeSpec& output(Type type);  // the type of the next output
  // Once: the node takes what was gathered. Output 0; the node must have one.
  LazyTensor make();
  // The same; the node itself.
  NodePtr make_node();

  Symbol op;                            // the operation, with overload
  std::vector<Argument> arguments;      // tensor-valued ones, in order
  LazyTensors operands;                 // the tensors among the arguments
  Attributes attributes;                // the arguments that are not tensors
  Attributes execution;                 // how LibTorch ran it: `via`, `grad`, `effect`, …
  std::vector<Type> outputs;            // their types
  std::vector<Annotation> annotations;  // no part of identity
  // The position of the node in the order of nodes. 0: after all nodes made before. A node that
  // replaces another takes over its `node.place()`.
  uint64_t place = 0;
  // The value of an input for runs whose caller gives none. It is part neither of identity nor of
  // the text of a graph: name and type identify an input.
  Array held;
};

class Node {
 public:
  // Called by NodeSpec::make_node.
  explicit Node(NodeSpec&& spec);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The parts that the node was made of: see NodeSpec.
  Symbol op() const { return spec_.op; }
  const std::vector<Argument>& arguments() const { return spec_.arguments; }
  const LazyTensors& operands() const { return spec_.operands; }
  const Attributes& attributes() const { return spec_.attributes; }
  const Attributes& execution() const { return spec_.execution; }
  const std::vector<Type>& outputs() const { return spec_.outputs; }
  const std::vector<Annotation>& annotations() const { return spec_.annotations; }

  // UserError naming the operation when there is no such attribute.
  const Attribute& attribute(std::string_view name) const;
  // The attribute of that name among `attributes`; nullptr: none.
  const Attribute* find_attribute(std::string_view name) const {
    return find(attributes(), Symbol(name));
  }
  // The attribute of that name among `execution`; nullptr: none.
  const Attribute* find_run(std::string_view name) const { return find(execution(), Symbol(name)); }
  // Value of the annotation `key` of the node itself; empty when there is none.
  std::string_view annotation(std::string_view key) const;
  // The value of an input made by `held_input`; undefined for all other nodes.
  const Array& held() const { return spec_.held; }
  // Position in the effect order; -1 for a pure node.
  int64_t effect() const;

  // Unique, and growing in the order in which nodes are made.
  uint64_t serial() const { return serial_; }
  // The position in the order of nodes: the serial, for a node that replaces none. A node that
  // replaces another takes over its position, or that of its last operand if that is later. Sorting
  // by place, then serial, is a topological order.
  uint64_t place() const { return spec_.place; }
  // The hash of operation, attributes, types and the operands' hashes. Computed on first call.
  Hash hash() const;

 private:
  Hash compute_hash() const;

  NodeSpec spec_;
  uint64_t serial_;
  mutable std::atomic<uint64_t> hash_low_{0}, hash_high_{0};
  mutable std::atomic<bool> hashed_{false};
};

// Operations every graph has besides ATen's.
namespace ops {
inline const Symbol kInput("composit::input");        // attributes: name, kind
inline const Symbol kConstant("composit::constant");  // attribute: value
}  // namespace ops

// torch.export's words. `block` is an argument of a region.
enum class InputKind : uint8_t { user_input, parameter, buffer, block };
// "user_input", "parameter", "buffer", "block".
std::string_view name(InputKind kind);
// The inverse of `name`; nothing for other text.
std::optional<InputKind> input_kind_from_name(std::string_view name);

// A new input. Inputs of one graph need names of their own.
LazyTensor input(std::string name, Type type, InputKind kind = InputKind::user_input);
// An input that holds a value; `evaluate` uses it unless the caller gives another.
LazyTensor held_input(std::string name, Array value, InputKind kind = InputKind::user_input);
// A value that is part of the graph. `name` is its name in the graph's text.
LazyTensor constant(Array value, std::string name = "");
bool is_input(const Node& node);                  // true for the operation `composit::input`
InputKind input_kind(const Node& node);           // of an input
const std::string& input_name(const Node& node);  // of an input

}  // namespace composit
