#include "frontends/ks/graph.h"

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

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
  throw composit::UserError("[ks] '" + print(name) +
                            "' has no graph: expected a function, its fwd, rev or sufrev");
}

// Makes inputs, and the argument that they are the numbers of.
class Inputs {
 public:
  Inputs(Tape& tape, const std::vector<ArgumentLeaf>& leaves) : tape_(tape), leaves_(leaves) {}

  Value argument(const Signature& signature) {
    Values items;
    for (const Parameter& one : signature.parameters) {
      count_ = 0;
      parameter_ = one.name;
      several_ = numbers(one.type) > 1;
      items.push_back(read(one.type, next_, {}));
      next_ += numbers(one.type);
    }
    if (next_ != leaves_.size())
      throw composit::UserError("[ks] expected " + std::to_string(next_) + " inputs, received " +
                                std::to_string(leaves_.size()));
    return items.size() == 1 ? items[0] : tuple_of(std::move(items));
  }
  const LazyTensors& tensors() const { return tensors_; }

 private:
  static size_t numbers(const Type& type) {
    if (type.kind != Type::Kind::tuple && type.kind != Type::Kind::tensor) return 1;
    size_t count = 0;
    for (const Type& part : type.parts) count += numbers(part);
    return count;
  }

  // The part of the argument whose numbers are the leaves from `first` on, at an index of the
  // tensors around it.
  Value read(const Type& type, size_t first, const Index& own) {
    switch (type.kind) {
      case Type::Kind::tuple: {
        Values items;
        for (const Type& part : type.parts) {
          items.push_back(read(part, first, own));
          first += numbers(part);
        }
        return tuple_of(std::move(items));
      }
      case Type::Kind::tensor: {
        const auto rank = static_cast<size_t>(type.rank);
        if (numbers(type) == 0) {  // a tangent of what has none
          const Type element = type.parts[0];
          return tensor_of(composit::Ints(rank, 0), [this, element, first](const Index& index) {
            return read(element, first, index);
          });
        }
        const composit::Ints all = sizes(first, type);
        if (all.size() < own.size() + rank) refuse(first, type, own.size() + rank);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(own.size());
        const composit::Ints mine(begin, begin + type.rank);
        read(type.parts[0], first, Index(own.size() + rank, Expr(int64_t{0})));  // makes inputs
        return tensor_of(
            mine,
            [this, type, first, own](const Index& index) {
              Index joined = own;
              joined.insert(joined.end(), index.begin(), index.end());
              return read(type.parts[0], first, joined);
            },
            true);
      }
      default:
        return number(type, first, own);
    }
  }

  composit::Ints sizes(size_t leaf, const Type& type) const {
    if (leaf >= leaves_.size() || !std::holds_alternative<composit::Type>(leaves_[leaf]))
      refuse(leaf, type, 1);
    const composit::Dims& dims = std::get<composit::Type>(leaves_[leaf]).sizes;
    return {dims.begin(), dims.end()};
  }

  Value number(const Type& type, size_t leaf, const Index& own) {
    if (leaf >= leaves_.size()) refuse(leaf, type, own.size());
    const bool integer = type.kind == Type::Kind::integer,
               boolean = type.kind == Type::Kind::boolean;
    if (const auto* known = std::get_if<int64_t>(&leaves_[leaf])) {
      if (!integer || !own.empty()) refuse(leaf, type, own.size());
      return {Expr::literal(*known, composit::DType::int64)};
    }
    if (const auto* known = std::get_if<bool>(&leaves_[leaf])) {
      if (!boolean || !own.empty()) refuse(leaf, type, own.size());
      return {Expr::literal(*known, composit::DType::bool_)};
    }
    const auto& given = std::get<composit::Type>(leaves_[leaf]);
    const composit::DType dtype = integer   ? composit::DType::int64
                                  : boolean ? composit::DType::bool_
                                            : tape_.floating();
    if (given.dtype != dtype || given.rank() != own.size()) refuse(leaf, type, own.size());
    return {tape_.load(input(leaf), own)};
  }

  // Inputs are made in their order.
  LazyTensor input(size_t leaf) {
    const auto found = made_.find(leaf);
    if (found != made_.end()) return found->second;
    const std::string name = several_ ? parameter_ + "." + std::to_string(count_++) : parameter_;
    const LazyTensor tensor = composit::input(name, std::get<composit::Type>(leaves_[leaf]));
    tensors_.push_back(tensor);
    return made_.emplace(leaf, tensor).first->second;
  }

  [[noreturn]] void refuse(size_t leaf, const Type& type, size_t rank) const {
    const std::string received = leaf >= leaves_.size() ? "nothing"
                                 : std::holds_alternative<composit::Type>(leaves_[leaf])
                                     ? composit::print(std::get<composit::Type>(leaves_[leaf]))
                                     : "a number";
    throw composit::UserError("[ks] input " + std::to_string(leaf) + ", of the parameter '" +
                              parameter_ + "': expected " + print(type) + " with " +
                              std::to_string(rank) + " dimensions, received " + received);
  }

  Tape& tape_;
  const std::vector<ArgumentLeaf>& leaves_;
  size_t next_ = 0, count_ = 0;
  std::string parameter_;
  bool several_ = false;
  std::map<size_t, LazyTensor> made_;
  LazyTensors tensors_;
};

}  // namespace

Signature signature_of(const Program& program, const std::string& function) {
  const Interpreter interpreter(program, Tape(composit::DType::float64));
  return signature_of(interpreter, parse_name(function), {1, 1});
}

composit::Graph graph_of(const Program& program, const std::string& function,
                         const std::vector<ArgumentLeaf>& leaves, const GraphOptions& options) {
  const Name name = parse_name(function);
  Interpreter interpreter(program, Tape(options.floating));
  const Position at{1, 1};
  const Signature signature = signature_of(interpreter, name, at);
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
