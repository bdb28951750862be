// Sound loops of every construct, for round trips and fuzzing.
//
//   RandomLoops random(7);      // a seed
//   Loops loops = random.next();
#pragma once

#include <random>
#include <string>
#include <vector>

#include "composit/op/loops.h"

namespace composit {

class RandomLoops {
 public:
  explicit RandomLoops(uint64_t seed) : random_(seed) {}
  Loops next();
  // From 0 to n - 1.
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

 private:
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  DType dtype();
  Type type();
  std::string axis_name();
  Scalar::Value number();
  Expr literal();
  Expr of_dtype(Expr x, DType dtype);
  Expr load(const std::vector<Expr>& pool);
  Expr call(const std::vector<Expr>& pool);
  // Leaves, and what a few functions make of them.
  std::vector<Expr> expressions(std::vector<Expr> leaves, bool loads);
  std::vector<Expr> axes(AxisKind last) const;
  const Expr& any(const std::vector<Expr>& pool) { return pool[below(pool.size())]; }

  void add_axes(Statement& statement);
  void add_accumulators(Statement& statement);
  void add_stores(Statement& statement);

  std::mt19937_64 random_;
  Loops loops_;
  Statement statement_;
};

}  // namespace composit
