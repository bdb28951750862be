#include "frontends/ks/graph.h"

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {
namespace {

Type tangent(const Type& type) {
  Type made = type;
  if (type.kind == Type::Kind::floating) return type;
  if (type.kind != Type::Kind::tuple && type.kind != Type::Kind::tensor) return {Type::Kind::tuple};
  for (Type& part : made.parts) part = tangent(part);
  return made;
}

Type argument_of(const Signature& signature) {
  if (signature.parameters.size() == 1) return signature.parameters[0].type;
  Type tuple{Type::Kind::tuple};
  for (const Parameter& one : signature.parameters) tuple.parts.push_back(one.type);
  return tuple;
}

Signature signature_of(const Interpreter& interpreter, const Name& name, Position at) {
  if (name.derivations.empty()) {
    const Def& def = interpreter.definition(name, name.argument, at);
    return {def.parameters, def.result};
  }
  Name inner = name;
  const std::string derivation = inner.derivations.front();
  inner.derivations.erase(inner.derivations.begin());
  const Signature of = signature_of(interpreter, inner, at);
  const Type argument = argument_of(of);
  if (derivation == "fwd")
    return {{{"x", argument}, {"dx", tangent(argument)}}, tangent(of.result)};
  if (derivation == "rev" || derivation == "sufrev")
    return {{{"x", argument}, {"dy", tangent(of.result)}}, tangent(argument)};
  // What the pass back needs of the pass forward is the argument.
  if (derivation == "suffwdpass") {
    Type both{Type::Kind::tuple};
    both.parts = {of.result, argument};
    return {of.parameters, both};
  }
  if (derivation == "sufrevpass")
    return {{{"dy", tangent(of.result)}, {"x", argument}}, tangent(argument)};
  throw composit::UserError("[ks] '" + print(name) +
                            "' has no graph: expected a function, its fwd, rev, sufrev, suffwdpass "
                            "or sufrevpass");
}

// The size of a tensor follows from its numbers.
void expect_numbers(const Parameter& parameter, const Type& type) {
  if (type.kind == Type::Kind::tensor && !has_numbers(type))
    throw composit::UserError("[ks] the parameter '" + parameter.name + "': " + print(type) +
                              " has no numbers, so nothing says how large it is");
  for (const Type& part : type.parts) expect_numbers(parameter, part);
}

// Makes inputs, and the argument that they are the numbers of.
class Inputs {
 public:
  Inputs(Tape& tape, const std::vector<ArgumentLeaf>& leaves) : tape_(tape), leaves_(leaves) {}

  Value argument(const Signature& signature) {
    Values items;
    for (const Parameter& one : signature.parameters) {
      parameter_ = one.name;
      const size_t first = next_;
      const Part part = part_of(one.type, 0);
      make_inputs(first);
      items.push_back(read(part, {}, {}));
    }
    if (next_ != leaves_.size())
      throw composit::UserError("[ks] expected " + std::to_string(next_) + " inputs, received " +
                                std::to_string(leaves_.size()));
    return items.size() == 1 ? items[0] : tuple_of(std::move(items));
  }
  const LazyTensors& tensors() const { return tensors_; }

 private:
  // A part of the argument: where its leaves are.
  struct Part {
    Type type;
    std::vector<Part> parts = {};
    size_t leaf = 0;                   // of a number; the first one of a tensor
    composit::Ints sizes = {};         // of a tensor
    std::vector<size_t> lengths = {};  // of a ragged tensor, an input for each axis
  };

  // Takes the next leaves, of what lies in tensors that have `depth` axes together.
  Part part_of(const Type& type, size_t depth) {
    Part part{.type = type};
    if (type.kind == Type::Kind::tuple) {
      for (const Type& one : type.parts) part.parts.push_back(part_of(one, depth));
    } else if (type.kind == Type::Kind::tensor) {
      const auto rank = static_cast<size_t>(type.rank);
      if (has_numbers(type) && is_length(next_, depth))
        for (size_t axis = 0; axis < rank; ++axis) {
          if (!is_length(next_, depth)) refuse(next_, "the lengths of " + print(type), depth);
          part.lengths.push_back(next_++);
        }
      part.leaf = next_;
      part.parts.push_back(part_of(type.parts[0], depth + rank));
      part.sizes = composit::Ints(rank, 0);  // a tangent of what has no numbers
      if (next_ > part.leaf) {
        part.sizes = sizes(part, depth, rank);
        for (size_t leaf = part.leaf; leaf < next_; ++leaf) expect_sizes(part, leaf, depth + rank);
      }
    } else {
      part.leaf = next_++;
      expect_number(part.leaf, type, depth);
    }
    return part;
  }
  // Elements of a tensor have more axes than its lengths.
  bool is_length(size_t leaf, size_t depth) const {
    if (leaf >= leaves_.size()) return false;
    const auto* given = std::get_if<composit::Type>(&leaves_[leaf]);
    return given != nullptr && given->dtype == composit::DType::int64 && given->rank() == depth;
  }

  composit::Ints sizes(const Part& part, size_t depth, size_t rank) const {
    const auto* given = std::get_if<composit::Type>(&leaves_[part.leaf]);
    const composit::Dims dims = given == nullptr ? composit::Dims{} : given->sizes;
    if (dims.size() < depth + rank) refuse(part.leaf, print(part.type), depth + rank);
    const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(depth);
    return {begin, begin + static_cast<std::ptrdiff_t>(rank)};
  }

  // All numbers of a tensor, and lengths of tensors in it, have its axes first.
  void expect_sizes(const Part& part, size_t leaf, size_t axes) const {
    const auto of = [&](size_t one) -> const composit::Dims& {
      return std::get<composit::Type>(leaves_[one]).sizes;
    };
    for (size_t axis = 0; axis < axes; ++axis)
      if (of(leaf)[axis] != of(part.leaf)[axis])
        throw composit::UserError(
            "[ks] the parameter '" + parameter_ + "': expected inputs of one size for " +
            print(part.type) + ", received " + std::to_string(of(part.leaf)[axis]) + " and " +
            std::to_string(of(leaf)[axis]) + " along axis " + std::to_string(axis) +
            " of the inputs " + std::to_string(part.leaf) + " and " + std::to_string(leaf));
  }

  void expect_number(size_t leaf, const Type& type, size_t rank) const {
    if (leaf >= leaves_.size()) refuse(leaf, print(type), rank);
    const bool integer = type.kind == Type::Kind::integer,
               boolean = type.kind == Type::Kind::boolean;
    const auto* given = std::get_if<composit::Type>(&leaves_[leaf]);
    if (given == nullptr) {
      const bool fits = std::holds_alternative<int64_t>(leaves_[leaf]) ? integer : boolean;
      if (!fits || rank > 0) refuse(leaf, print(type), rank);
      return;
    }
    const composit::DType dtype = integer   ? composit::DType::int64
                                  : boolean ? composit::DType::bool_
                                            : tape_.floating();
    if (given->dtype != dtype || given->rank() != rank) refuse(leaf, print(type), rank);
  }

  // The inputs of a parameter are `v`, or `v.0`, `v.1` where there are several.
  void make_inputs(size_t first) {
    size_t count = 0;
    for (size_t leaf = first; leaf < next_; ++leaf) {
      const auto* type = std::get_if<composit::Type>(&leaves_[leaf]);
      if (type == nullptr) continue;
      const std::string name =
          next_ - first > 1 ? parameter_ + "." + std::to_string(count++) : parameter_;
      tensors_.push_back(composit::input(name, *type));
      made_.emplace(leaf, tensors_.back());
    }
  }

  // The part at an index of the tensors around it. `exists`: whether the lengths of all of these
  // are from 0 to their sizes; absent: they have none.
  Value read(const Part& part, const Index& own, const Expr& exists) const {
    if (part.type.kind == Type::Kind::tuple) {
      Values items;
      for (const Part& one : part.parts) items.push_back(read(one, own, exists));
      return tuple_of(std::move(items));
    }
    if (part.type.kind != Type::Kind::tensor) return number(part, own, exists);
    Index lengths;
    Expr valid = exists;
    for (size_t axis = 0; axis < part.lengths.size(); ++axis) {
      const int64_t size = part.sizes[axis];
      const Expr length = tape_.load(made_.at(part.lengths[axis]), own);
      const Expr fits = length >= int64_t{0} && length <= size;
      lengths.push_back(composit::select(fits,
                                         composit::min(composit::max(length, int64_t{0}), size),
                                         Expr::literal(size, composit::DType::int64)));
      valid = valid.defined() ? valid && fits : fits;
    }
    return tensor_of(
        part.sizes,
        [this_ = *this, element = part.parts[0], own, valid](const Index& index) {
          Index joined = own;
          joined.insert(joined.end(), index.begin(), index.end());
          return this_.read(element, joined, valid);
        },
        true, std::move(lengths));
  }

  // In a tensor whose length is none that it can have, nothing is a number.
  Value number(const Part& part, const Index& own, const Expr& exists) const {
    if (const auto* known = std::get_if<int64_t>(&leaves_[part.leaf]))
      return {Expr::literal(*known, composit::DType::int64)};
    if (const auto* known = std::get_if<bool>(&leaves_[part.leaf]))
      return {Expr::literal(*known, composit::DType::bool_)};
    const Expr element = tape_.load(made_.at(part.leaf), own);
    if (!exists.defined()) return {element};
    return {composit::select(exists, element, no_number(element.dtype()))};
  }

  [[noreturn]] void refuse(size_t leaf, const std::string& expected, size_t rank) const {
    const std::string received = leaf >= leaves_.size() ? "nothing"
                                 : std::holds_alternative<composit::Type>(leaves_[leaf])
                                     ? composit::print(std::get<composit::Type>(leaves_[leaf]))
                                 : std::holds_alternative<bool>(leaves_[leaf]) ? "a Bool"
                                                                               : "an Integer";
    throw composit::UserError("[ks] input " + std::to_string(leaf) + ", of the parameter '" +
                              parameter_ + "': expected " + expected + " with " +
                              std::to_string(rank) + " dimensions, received " + received);
  }

  Tape& tape_;
  const std::vector<ArgumentLeaf>& leaves_;
  size_t next_ = 0;
  std::string parameter_;
  std::map<size_t, LazyTensor> made_;
  LazyTensors tensors_;
};

}  // namespace

Signature signature_of(const Program& program, const std::string& function) {
  const Interpreter interpreter(program, Tape(composit::DType::float64));
  return signature_of(interpreter, parse_name(function), {});
}

composit::Graph graph_of(const Program& program, const std::string& function,
                         const std::vector<ArgumentLeaf>& leaves, const GraphOptions& options) {
  const Name name = parse_name(function);
  Interpreter interpreter(program, Tape(options.floating));
  const Position at;
  const Signature signature = signature_of(interpreter, name, at);
  if (name.derivations.empty())
    for (const Parameter& one : signature.parameters) expect_numbers(one, one.type);
  Inputs inputs(interpreter.tape(), leaves);
  const Value argument = inputs.argument(signature);
  std::vector<Leaf> results;
  Tape& tape = interpreter.tape();
  tape.leaves(tape.computed(interpreter.call(name, argument, at)), {}, results);
  composit::Graph::Parts parts;
  parts.inputs = inputs.tensors();
  for (const Leaf& one : results) parts.outputs.push_back(one.tensor);
  return composit::Graph(std::move(parts));
}

}  // namespace flashlight::ks
