// One statement of a loop form, being run.
//
//   StatementRun(statement, operands, results).run();
//
// Points are evaluated in blocks along one axis, the run axis. Along a parallel axis every point of
// a block is a lane with accumulators of its own; along a reduction axis the points of a block are
// combined with each other, neighbours first, and then with the one set of accumulators.
#pragma once

#include <vector>

#include "composit/eval/program.h"
#include "composit/op/loops.h"

namespace composit::eval {

// The array that stores write to. It is contiguous, and has a wider dtype than the result if sums
// of floats are stored.
struct Result {
  Type type;    // of the memory
  DType dtype;  // of the result
  std::shared_ptr<std::byte> data;
};

// Zeroed memory for a tensor: a byte at least.
std::shared_ptr<std::byte> zeros(const Type& type);

// The same statement with sums and products of floats accumulated in double.
Statement with_wide_accumulators(Statement statement);
// float64 for the narrower floats, complex128 for the narrower complex dtypes.
DType wide_dtype(DType dtype);

class StatementRun {
 public:
  // `statement` and `results` must outlive this.
  StatementRun(const Statement& statement, const std::vector<Array>& operands,
               std::vector<Result>& results);
  void run();

 private:
  // Expressions of one purpose.
  struct Block {
    Program program;
    std::vector<size_t> values;  // their numbers in `program`
    std::vector<size_t> places;
  };
  struct Accumulator {
    explicit Accumulator(DType dtype);
    DType dtype;
    std::vector<std::byte> value;                // per lane
    std::vector<std::byte> left, right, folded;  // scratch
  };

  size_t choose_run_axis() const;
  bool may_run_along(size_t axis) const;
  double cost_along(size_t axis) const;
  Block block(size_t run_axis, const std::vector<Expr>& values) const;
  size_t capacity(size_t run_axis) const;
  Block store_block(size_t run_axis) const;

  bool has(AxisKind kind) const;
  bool in_lanes() const;
  size_t lane_axis() const;
  template <class F>
  void for_each_point(AxisKind kind, F f);
  template <class F>
  void for_each_block(F f) const;

  void run_lanes(const Points& lanes);
  void start(const Points& lanes);
  void reduce(const Points& lanes);
  Points inside(const Points& points);
  void combine_lanes(const Points& active, const Points& lanes);
  void combine_block(const Points& active);
  void combine_pairs(size_t count);
  void select_lanes(const Points& points, const Points& lanes, std::vector<const void*>& values);
  void store(const Points& points, const Points& lanes);
  const int64_t* positions(const Points& points, const Points& lanes);

  const Statement& statement_;
  std::vector<Result>& results_;
  Environment environment_;
  const size_t run_axis_;  // Program::kNoAxis: none
  std::vector<Accumulator> accumulators_;
  Block domain_, init_, body_, combine_, stores_;
  std::vector<int64_t> inside_, positions_;
};

}  // namespace composit::eval
