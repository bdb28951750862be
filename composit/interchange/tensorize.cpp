#include "composit/interchange/tensorize.h"

#include <algorithm>
#include <complex>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "composit/interchange/scalar_rows.h"
#include "composit/interchange/values.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::interchange {
namespace {

LazyTensor call(std::string_view op, std::vector<ArgumentValue> arguments) {
  return apply_one(op, std::move(arguments));
}

LazyTensor reshaped(const LazyTensor& x, const Dims& sizes) {
  return is_left_out(x.sizes(), sizes) ? x : call("aten::reshape", {x, sizes});
}

LazyTensor expanded(const LazyTensor& x, const Dims& sizes) {
  return is_left_out(x.sizes(), sizes) ? x : call("aten::expand", {x, sizes});
}

// (-1)^(n + 1) n! zeta(n + 1, x), n above 0.
LazyTensor polygamma(const LazyTensor& n, const LazyTensor& x) {
  const LazyTensor sign = call("aten::remainder.Scalar", {n, 2}) * 2 - 1;
  const LazyTensor factorial = exp(call("aten::lgamma", {n + 1}));
  return sign * factorial * call("aten::special_zeta", {n + 1, x});
}

// A function of tensors that broadcast, of the dtype that expressions say.
LazyTensor applied(Function function, const LazyTensors& arguments, DType dtype) {
  if (function == Function::cast) return to(arguments[0], dtype);
  if (function == Function::select) return where(arguments[0], arguments[1], arguments[2]);
  if (function == Function::floor_divide || function == Function::trunc_divide) {
    const char* mode = function == Function::floor_divide ? "floor" : "trunc";
    return to(call("aten::div.Tensor_mode", {arguments[0], arguments[1], mode}), dtype);
  }
  const bool is_part = function == Function::real || function == Function::imag;
  if (is_part && !is_complex(arguments[0].dtype()))
    return function == Function::real ? arguments[0] : filled(0, dtype, arguments[0].sizes());
  if (function == Function::polygamma) return polygamma(arguments[0], arguments[1]);
  return to(call(operator_of(function), {arguments.begin(), arguments.end()}), dtype);
}

constexpr int64_t kLargestSpace = int64_t{1} << 26;  // elements that a gather may make

// An index that is an axis shifted, or a number.
struct PlainIndex {
  std::optional<size_t> axis = {};
  int64_t shift = 0;
};

std::optional<int64_t> integer_in(const Expr& x) {
  if (x.kind() != ExprKind::literal) return std::nullopt;
  const auto* value = std::get_if<int64_t>(&x.value());
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<PlainIndex> plain_index(const Expr& x) {
  if (const auto value = integer_in(x)) return PlainIndex{{}, *value};
  if (x.kind() == ExprKind::axis) return PlainIndex{x.number(), 0};
  if (!x.is(Function::add) && !x.is(Function::sub)) return std::nullopt;
  const auto left = plain_index(x[0]), right = plain_index(x[1]);
  if (!left || !right || right->axis) return std::nullopt;
  const int64_t shift = x.is(Function::add) ? right->shift : -right->shift;
  return PlainIndex{left->axis, left->shift + shift};
}

class StatementTensors {
 public:
  StatementTensors(const Loops& loops, const Statement& statement, const LazyTensors& operands)
      : loops_(loops), statement_(statement), operands_(operands) {
    for (size_t i = 0; i < statement.axes.size(); ++i) {
      space_.push_back(statement.axes[i].extent);
      if (statement.axes[i].kind == AxisKind::scan)
        throw UserError("a loop in order along an axis has no operators");
      if (statement.axes[i].kind == AxisKind::reduction)
        reduced_.push_back(static_cast<int64_t>(i));
    }
  }

  // Adds what the statement stores to `results`.
  void run(LazyTensors& results) {
    if (!reduced_.empty() || !statement_.body.empty()) reduce();
    for (const Store& store : statement_.stores) put(store, results);
  }

 private:
  size_t rank() const { return space_.size(); }

  // A tensor with one axis per axis of the space, where `axes` are those that it has.
  LazyTensor in_space(const LazyTensor& x, const std::vector<size_t>& axes) const {
    Dims sizes(rank(), 1);
    for (size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] = x.sizes()[i];
    return reshaped(x, sizes);
  }

  // ---- values -----------------------------------------------------------------------------------

  LazyTensor value(const Expr& x) {
    for (const Expr& part : parts_of({x}))
      if (!values_.contains(part.hash().str()))
        values_.emplace(part.hash().str(), part_value(part));
    return values_.at(x.hash().str());
  }

  LazyTensor part_value(const Expr& x) {
    switch (x.kind()) {
      case ExprKind::literal:
        return literal(x);
      case ExprKind::axis:
        return axis(x.number());
      case ExprKind::load:
        return load(x);
      case ExprKind::accumulator:
        return accumulators_.at(x.number());
      case ExprKind::call: {
        LazyTensors arguments;
        for (const Expr& argument : x.arguments())
          arguments.push_back(values_.at(argument.hash().str()));
        return applied(x.function(), arguments, x.dtype());
      }
      default:
        throw UserError("its combination of values has no operators");
    }
  }

  static LazyTensor literal(const Expr& x) {
    const Type type = tensor_type(x.dtype(), {});
    if (const auto* complex = std::get_if<std::complex<double>>(&x.value()))
      return constant(array_of(type, std::vector<std::complex<double>>{*complex}));
    if (const auto* integer = std::get_if<int64_t>(&x.value()))
      return constant(array_of(type, std::vector<int64_t>{*integer}));
    if (const auto* truth = std::get_if<bool>(&x.value()))
      return constant(array_of(type, std::vector<int64_t>{*truth ? 1 : 0}));
    return constant(array_of(type, std::vector<double>{std::get<double>(x.value())}));
  }

  LazyTensor axis(size_t number) const {
    std::vector<int64_t> indices(static_cast<size_t>(space_[number]));
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
    return in_space(integers(indices), {number});
  }

  // Each index an axis of its own, and in range; nothing else.
  std::optional<std::vector<PlainIndex>> plain_indices(const Expr& x, const Dims& sizes) const {
    std::vector<PlainIndex> indices;
    std::vector<bool> used(rank(), false);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto index = plain_index(x[i]);
      if (!index || index->shift < 0) return std::nullopt;
      const int64_t extent = index->axis ? space_[*index->axis] : 1;
      if (index->shift + extent > sizes[i]) return std::nullopt;
      if (index->axis && used[*index->axis]) return std::nullopt;
      if (index->axis) used[*index->axis] = true;
      indices.push_back(*index);
    }
    return indices;
  }

  LazyTensor load(const Expr& x) {
    const LazyTensor& operand = operands_.at(x.number());
    if (const auto indices = plain_indices(x, operand.sizes()))
      return plain_load(operand, *indices);
    return gathered(x, operand);
  }

  LazyTensor plain_load(LazyTensor x, const std::vector<PlainIndex>& indices) const {
    std::vector<size_t> axes;    // of the space, in the order of x
    std::vector<int64_t> order;  // the axes of x that have one, in the order of the space
    Dims kept;
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t extent = indices[i].axis ? space_[*indices[i].axis] : 1;
      if (!is_left_out({x.sizes()[i]}, {extent}))
        x = slice(x, static_cast<int64_t>(i), indices[i].shift, indices[i].shift + extent);
      if (!indices[i].axis) continue;
      axes.push_back(*indices[i].axis);
      kept.push_back(extent);
    }
    x = reshaped(x, kept);
    for (size_t i = 0; i < axes.size(); ++i) order.push_back(static_cast<int64_t>(i));
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return axes[static_cast<size_t>(a)] < axes[static_cast<size_t>(b)];
    });
    if (!std::is_sorted(order.begin(), order.end())) x = permute(x, order);
    std::sort(axes.begin(), axes.end());
    return in_space(x, axes);
  }

  // By computed indices. Those out of range, which a `select` or a domain leaves out, are moved in.
  LazyTensor gathered(const Expr& x, const LazyTensor& operand) {
    if (operand.numel() == 0) return filled(0, operand.dtype(), Dims(rank(), 1));  // never read
    LazyTensors indices;
    Dims sizes(rank(), 1);
    for (size_t i = 0; i < operand.sizes().size(); ++i) {
      const LazyTensor index = ranked(to(value(x[i]), DType::int64));
      indices.push_back(call("aten::clamp", {index, 0, operand.sizes()[i] - 1}));
      sizes = broadcast(sizes, index.sizes());
    }
    int64_t elements = 1;
    for (const int64_t size : sizes) elements *= size;
    if (elements > kLargestSpace)
      throw UserError("it reads " + std::to_string(elements) +
                      " elements at computed places, which a gather would have to make");
    return call("aten::index.Tensor", {operand, indices});
  }

  // With all axes, of size 1 those that it does not have.
  LazyTensor ranked(const LazyTensor& x) const {
    return x.sizes().empty() ? reshaped(x, Dims(rank(), 1)) : x;
  }

  // ---- reductions -------------------------------------------------------------------------------

  std::string_view reduction_of(const Expr& combine, size_t number) const {
    const auto is_side = [&](const Expr& x, ExprKind kind) {
      return x.kind() == kind && x.number() == number;
    };
    if (combine.kind() == ExprKind::call && combine.arguments().size() == 2) {
      const bool plain =
          (is_side(combine[0], ExprKind::left) && is_side(combine[1], ExprKind::right)) ||
          (is_side(combine[1], ExprKind::left) && is_side(combine[0], ExprKind::right));
      static const std::map<Function, std::string_view> table = {
          {Function::add, "aten::sum.dim_IntList"},
          {Function::mul, "aten::prod.dim_int"},
          {Function::max, "aten::amax"},
          {Function::min, "aten::amin"},
          {Function::logical_and, "aten::all.dims"},
          {Function::logical_or, "aten::any.dims"}};
      if (const auto found = table.find(combine.function()); plain && found != table.end())
        return found->second;
    }
    throw UserError("its reduction has no operator");
  }

  void reduce() {
    for (size_t k = 0; k < statement_.body.size(); ++k) {
      const Expr& combine = statement_.combine.at(k);
      const std::string_view op = reduction_of(combine, k);
      const Expr &init = statement_.init.at(k), &body = statement_.body[k];
      LazyTensor sum;
      if (combine.is(Function::add) && !statement_.domain.defined()) sum = einsum(body);
      if (!sum) sum = reduced_body(op, body, init);
      accumulators_.push_back(
          applied(combine.function(), {value(init), to(sum, init.dtype())}, combine.dtype()));
    }
  }

  LazyTensor reduced_body(std::string_view op, const Expr& body, const Expr& init) {
    LazyTensor all = value(body);
    if (statement_.domain.defined()) {
      // What changes nothing: `init` for the largest and the least, which has met it anyway.
      LazyTensor nothing = to(value(init), all.dtype());
      if (op == "aten::sum.dim_IntList") nothing = filled(0, all.dtype(), {});
      if (op == "aten::prod.dim_int") nothing = filled(1, all.dtype(), {});
      all = where(value(statement_.domain), all, nothing);
    }
    all = ranked(all);
    Dims sizes = all.sizes();
    for (const int64_t axis : reduced_)
      sizes[static_cast<size_t>(axis)] = space_[static_cast<size_t>(axis)];
    all = expanded(all, sizes);
    const DType dtype = all.dtype();
    if (op == "aten::sum.dim_IntList") return call(op, {all, reduced_, true, dtype});
    if (op != "aten::prod.dim_int") return call(op, {all, reduced_, true});
    for (const int64_t axis : reduced_) all = call(op, {all, axis, true, dtype});
    return all;
  }

  // A sum of products of two loads, or nothing.
  LazyTensor einsum(const Expr& body) {
    if (!body.is(Function::mul) || !is_floating_point(body.dtype()) || rank() > 26) return {};
    const LazyTensor x = ranked(value(body[0])), y = ranked(value(body[1]));
    std::string left, right, result;
    Dims sizes(rank(), 1), left_sizes, right_sizes, result_sizes;
    for (size_t i = 0; i < rank(); ++i) {
      const char letter = static_cast<char>('a' + i);
      const bool in_left = x.sizes()[i] == space_[i], in_right = y.sizes()[i] == space_[i];
      const bool is_reduced =
          std::count(reduced_.begin(), reduced_.end(), static_cast<int64_t>(i)) > 0;
      if (is_reduced && (!in_left || !in_right)) return {};
      if (in_left) left += letter, left_sizes.push_back(space_[i]);
      if (in_right) right += letter, right_sizes.push_back(space_[i]);
      if (is_reduced || (!in_left && !in_right)) continue;
      result += letter;
      sizes[i] = space_[i];
      result_sizes.push_back(space_[i]);
    }
    const LazyTensor sum =
        call("aten::einsum", {left + "," + right + "->" + result,
                              LazyTensors{reshaped(x, left_sizes), reshaped(y, right_sizes)}});
    return reshaped(sum, sizes);
  }

  // ---- stores -----------------------------------------------------------------------------------

  void put(const Store& store, LazyTensors& results) {
    const Type& type = loops_.results.at(store.result);
    LazyTensor stored = to(value(store.value), type.dtype);
    Dims space = space_;
    for (const int64_t axis : reduced_) space[static_cast<size_t>(axis)] = 1;
    if (statement_.domain.defined() && reduced_.empty())
      stored = where(value(statement_.domain), stored, filled(0, type.dtype, {}));
    stored = expanded(ranked(stored), space);
    const auto plain = places_of(store, type.sizes);
    if (!plain) return scatter(store, stored, type, results[store.result]);
    const std::vector<PlainIndex>& places = *plain;
    // Axes of the space in the order of the result; others have one point.
    std::vector<int64_t> order;
    std::vector<bool> used(rank(), false);
    for (const PlainIndex& place : places)
      if (place.axis) order.push_back(static_cast<int64_t>(*place.axis)), used[*place.axis] = true;
    for (size_t i = 0; i < rank(); ++i) {
      if (used[i]) continue;
      if (space[i] != 1) throw UserError("it stores one place several times");
      order.push_back(static_cast<int64_t>(i));
    }
    Dims sizes;
    for (const PlainIndex& place : places) sizes.push_back(place.axis ? space_[*place.axis] : 1);
    if (!std::is_sorted(order.begin(), order.end())) stored = permute(stored, order);
    stored = reshaped(stored, sizes);
    add_to(results[store.result], stored, places, type, store.add);
  }

  // At computed places. What the domain leaves out goes to a place of its own, which is cut off.
  void scatter(const Store& store, const LazyTensor& stored, const Type& type, LazyTensor& result) {
    if (type.sizes.empty()) throw UserError("it stores one number several times");
    if (!result) result = filled(0, type.dtype, type.sizes);
    const bool guarded = statement_.domain.defined() && reduced_.empty();
    Dims sizes = stored.sizes();
    LazyTensors indices;
    for (size_t i = 0; i < type.sizes.size(); ++i) {
      LazyTensor index = ranked(to(value(store.at[i]), DType::int64));
      if (guarded)
        index = where(value(statement_.domain), index,
                      filled(i == 0 ? static_cast<double>(type.sizes[0]) : 0, DType::int64, {}));
      indices.push_back(expanded(ranked(index), sizes));
    }
    LazyTensor whole = result;
    std::vector<int64_t> pads(2 * type.sizes.size(), 0);
    pads.back() = 1;
    if (guarded) whole = call("aten::constant_pad_nd", {whole, pads});
    whole = call("aten::index_put", {whole, indices, stored, store.add});
    result = guarded ? slice(whole, 0, 0, type.sizes[0]) : whole;
  }

  // Nothing where they have to be computed.
  std::optional<std::vector<PlainIndex>> places_of(const Store& store, const Dims& sizes) const {
    std::vector<PlainIndex> places;
    std::vector<bool> used(rank(), false);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto place = plain_index(store.at.at(i));
      const int64_t extent = place && place->axis ? space_[*place->axis] : 1;
      if (!place || place->shift < 0 || place->shift + extent > sizes[i] ||
          (place->axis && used[*place->axis]))
        return std::nullopt;
      if (place->axis) used[*place->axis] = true;
      places.push_back(*place);
    }
    return places;
  }

  // The result with `stored` in its place; zeros where nothing was stored before.
  static void add_to(LazyTensor& result, const LazyTensor& stored,
                     const std::vector<PlainIndex>& places, const Type& type, bool add) {
    if (is_left_out(stored.sizes(), type.sizes)) {
      result = result && add ? applied(Function::add, {result, stored}, type.dtype) : stored;
      return;
    }
    std::vector<int64_t> pads;  // of the last axis first, before and behind
    for (size_t i = places.size(); i-- > 0;) {
      pads.push_back(places[i].shift);
      pads.push_back(type.sizes[i] - places[i].shift - stored.sizes()[i]);
    }
    const LazyTensor moved = call("aten::constant_pad_nd", {stored, pads});
    if (!result) {
      result = moved;
    } else if (add) {
      result = applied(Function::add, {result, moved}, type.dtype);
    } else {
      const LazyTensor here = filled(1, DType::bool_, {});
      result = where(call("aten::constant_pad_nd", {expanded(here, stored.sizes()), pads}), moved,
                     result);
    }
  }

  const Loops& loops_;
  const Statement& statement_;
  const LazyTensors& operands_;
  Dims space_;
  std::vector<int64_t> reduced_;
  LazyTensors accumulators_;
  std::map<std::string, LazyTensor> values_;  // by hash
};

}  // namespace

LazyTensors tensorize(const Loops& loops, const LazyTensors& operands) {
  LazyTensors results(loops.results.size());
  for (const Statement& statement : loops.statements)
    StatementTensors(loops, statement, operands).run(results);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i] && is_defined(loops.results[i]))
      results[i] = filled(0, loops.results[i].dtype, loops.results[i].sizes);
  return results;
}

}  // namespace composit::interchange
