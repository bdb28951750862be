// Random statements, in blocks against point by point. Numbers are small integers, so that sums are
// exact in any order and results equal.
#include <gtest/gtest.h>

#include <random>

#include "composit/eval/loops.h"
#include "composit/ir/error.h"
#include "tests/eval/arrays.h"
#include "tests/eval/pointwise.h"

namespace composit {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Loops next() {
    loops_ = {};
    operands_.clear();
    for (int i = 0; i < 3; ++i) add_operand(i == 2 ? DType::int64 : dtype());
    statement_ = {};
    guard_ = true;
    add_axes();
    chance(0.5) ? add_accumulators() : add_plain_store();
    if (guard_.kind() != ExprKind::literal) statement_.domain = guard_;
    loops_.statements = {statement_};
    return loops_;
  }
  const std::vector<Array>& operands() const { return operands_; }

 private:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  DType dtype() {
    constexpr DType kDTypes[] = {DType::float32, DType::float64, DType::int64, DType::uint8};
    return kDTypes[below(4)];
  }

  void add_operand(DType dtype) {
    Dims sizes;
    for (int64_t rank = below(3); rank >= 0; --rank) sizes.emplace_back(1 + below(5));
    const Type type = tensor_type(dtype, sizes);
    loops_.operands.push_back(type);
    with_storage(dtype, [&]<class S>(std::type_identity<S>) {
      if constexpr (std::is_arithmetic_v<S> && !std::is_same_v<S, bool>) {
        std::vector<S> numbers;
        for (int64_t i = type.numel(); i > 0; --i) numbers.push_back(static_cast<S>(below(7) - 3));
        operands_.push_back(Array::copy_of(type, numbers.data()));
      }
    });
  }

  void add_axes() {
    const int64_t counts[] = {below(4), below(5) / 4, below(3)};
    for (size_t kind = 0; kind < 3; ++kind)
      for (int64_t i = counts[kind]; i > 0; --i) {
        const int64_t extent = chance(0.05) ? 520 : chance(0.05) ? 0 : 1 + below(6);
        statement_.axes.push_back({"", extent, static_cast<AxisKind>(kind)});
      }
  }

  Expr affine() {
    Expr sum = below(5) - 2;
    for (size_t i = 0; i < statement_.axes.size(); ++i)
      if (chance(0.5)) sum = Expr::axis(i) * (below(3) + 1) + (chance(0.5) ? sum : -sum);
    return sum;
  }

  // Something in [0, size), or what is so only where `in_range` holds.
  Expr index(int64_t size, Expr& in_range, int depth) {
    const Expr x = affine();
    switch (below(depth > 0 ? 5 : 4)) {
      case 0:
        return remainder(x, size);
      case 1:
        return max(0, min(x, size - 1));
      case 2:
        in_range = in_range && x >= 0 && x < size;
        return x;
      case 3:
        return below(size);
      default:
        return remainder(cast(value(depth - 1), DType::int64), size);
    }
  }

  // A load that is guarded by a select or by the domain.
  Expr load(int depth) {
    const auto number = static_cast<size_t>(below(3));
    std::vector<Expr> at;
    Expr in_range = true;
    for (int64_t size : loops_.operands[number].sizes) at.push_back(index(size, in_range, depth));
    const Expr element = Expr::load(number, loops_.operands[number].dtype, at);
    if (in_range.kind() == ExprKind::literal || !chance(0.4))
      return select(in_range, element, below(5));
    guard_ = guard_ && in_range;
    return element;
  }

  Expr value(int depth) {
    if (depth == 0) return chance(0.2) ? cast(affine(), DType::float64) : load(0);
    const Expr x = value(depth - 1), y = value(depth - 1);
    switch (below(6)) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return max(x, y);
      case 4:
        return select(x < y, x, load(depth - 1));
      default:
        return load(depth);
    }
  }

  std::vector<Expr> store_indices(bool scan, Dims& sizes) {
    std::vector<Expr> at;
    for (size_t i = 0; i < statement_.axes.size(); ++i) {
      const AxisKind kind = statement_.axes[i].kind;
      if (kind == AxisKind::reduction || (kind == AxisKind::scan && !scan)) continue;
      at.push_back(Expr::axis(i));
      sizes.push_back(statement_.axes[i].extent);
    }
    return at;
  }

  void add_store(const Expr& value) {
    Dims sizes;
    Store store{loops_.results.size(), store_indices(true, sizes), value, false};
    if (!store.at.empty() && chance(0.3)) {  // several to one place
      sizes = {3};
      store.at = {remainder(store.at[0] + store.at.back(), 3)};
      store.add = true;
    }
    loops_.results.push_back(tensor_type(value.dtype(), sizes));
    statement_.stores.push_back(store);
  }

  void add_plain_store() {
    std::erase_if(statement_.axes, [](const Axis& x) { return x.kind != AxisKind::parallel; });
    add_store(value(2));
  }

  // A sum, an extremum, or the first extremum and where it was.
  void add_accumulators() {
    const Expr body = cast(value(2), chance(0.5) ? DType::float32 : DType::int64);
    const DType dtype = body.dtype();
    const Expr left = Expr::left(0, dtype), right = Expr::right(0, dtype);
    const int64_t which = below(3);
    statement_.init = {below(3)};
    statement_.body = {body};
    statement_.combine = {which == 0 ? left + right : max(left, right)};
    if (which == 2) {
      statement_.init.push_back(-1);
      statement_.body.push_back(affine());
      statement_.combine = {
          select(right > left, right, left),
          select(right > left, Expr::right(1, DType::int64), Expr::left(1, DType::int64))};
      add_store(Expr::accumulator(1, DType::int64) + 1);
    }
    add_store(Expr::accumulator(0, dtype) * 2);
  }

  std::mt19937_64 random_;
  Loops loops_;
  Statement statement_;
  Expr guard_;  // of the domain
  std::vector<Array> operands_;
};

TEST(RandomLoops, BlocksEqualPoints) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Generator generator(seed);
    const Loops loops = generator.next();
    double points = 1;
    for (const Axis& axis : loops.statements[0].axes) points *= static_cast<double>(axis.extent);
    if (points > 3000) continue;
    verify(loops);
    const auto expected = pointwise(loops, generator.operands());
    const auto results = evaluate(loops, generator.operands());
    for (size_t i = 0; i < results.size(); ++i)
      ASSERT_EQ(elements(results[i]), expected[i]) << "seed " << seed << "\n" << print(loops);
  }
}

}  // namespace
}  // namespace composit
