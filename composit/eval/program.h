// Expressions of a statement, made ready to be evaluated for many points at once.
//
//   Program program(environment, /*run_axis=*/1, /*capacity=*/512);
//   const size_t y = program.add(exp(x(axis0, axis1)) + 1);
//   program.finish();
//   environment.axes[0] = 3;
//   program.run({.first = 0, .count = 512});
//   auto* values = static_cast<const float*>(program.values(y));
//
// Parts that do not depend on the run axis are evaluated for one point, and parts whose axes have
// not moved since the last run not at all.
//
// Both branches of `select` are evaluated. A load out of range and a division by zero there give 0
// and a fault, which goes with the value through all that uses it, but for the branch that is not
// taken; a fault in a value that is asked for is thrown.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "composit/eval/block.h"
#include "composit/ir/array.h"
#include "composit/ir/flat_map.h"
#include "composit/op/expr.h"

namespace composit::eval {

// The current values of the leaves of expressions. Accumulators and operands of `combine` are
// blocks.
struct Environment {
  const std::vector<Array>& operands;
  std::vector<int64_t> axes;
  std::vector<const void*> accumulators, left, right;
};

struct Fault {
  enum Kind : uint8_t { none, range, division } kind = none;
  Function function = Function::count_;  // that divides
  size_t axis = 0;                       // of the tensor
  int64_t index = 0, size = 0;
  [[noreturn]] void raise() const;
};

class Program {
 public:
  static constexpr size_t kNoAxis = 62;  // of a run: all points are one

  Program(const Environment& environment, size_t run_axis, size_t capacity);

  size_t add(const Expr& root);
  // Elements of a tensor of that type at these indices, to be stored to.
  size_t add_place(const std::vector<Expr>& at, const Type& type);
  void finish();

  void run(const Points& points);
  // The values of a part at all points of the run.
  const void* values(size_t part) const;
  bool depends_on_run(size_t part) const { return (parts_[part].axes & varying_) != 0; }
  // Valid until the next call for the same place.
  Elements elements(size_t place);

  // Nanoseconds per point, very roughly: to compare run axes with.
  double cost(double points_per_run) const;

 private:
  // An index: what `part` says, plus `step` for each point of the run. Without a step, `part`
  // says it point by point.
  struct Index {
    size_t part;
    std::optional<int64_t> step;
  };
  struct Place {
    std::vector<Index> indices;
    std::vector<int64_t> sizes, strides;
    std::vector<int64_t> offsets;  // scratch
  };
  struct Part {
    Expr expr;
    ExprKind kind = ExprKind::literal;
    Function function = Function::count_;
    DType dtype = DType::count_;
    std::vector<size_t> arguments;  // for a load, of its place
    uint64_t axes = 0;              // that it depends on, as bits
    std::optional<int64_t> step;    // per point of the run, where it is affine
    size_t place = 0;               // of a load
    bool needed = false, repeated = false;
    std::unique_ptr<std::byte[]> own;
    const std::byte* data = nullptr;
    std::vector<Fault> faults;  // none: empty; else one per element
    const Fault& fault(size_t i) const { return faults[faults.size() == 1 ? 0 : i]; }
  };

  size_t number_of(const Expr& expr);
  void add_part(const Expr& expr);
  std::optional<int64_t> step_of(const Part& part) const;
  Place place_of(const std::vector<Expr>& at, const Type& type);
  void need(size_t part, bool by_points);

  uint64_t moved(const Points& points);
  void evaluate(Part& part);
  void evaluate_load(Part& part);
  void evaluate_call(Part& part);
  size_t count(const Part& part) const { return part.axes & varying_ ? points_.count : 1; }
  std::optional<Elements> affine_elements(Place& place, const Points& points) const;
  Elements listed_elements(Place& place, const Points& points, std::vector<Fault>& faults) const;
  void inherit_faults(Part& part) const;
  void inherit_chosen_faults(Part& part) const;
  void find_zero_divisors(Part& part) const;

  const Environment& environment_;
  const size_t run_axis_, capacity_;
  const uint64_t varying_;  // the run axis, and blocks from the environment
  std::vector<Part> parts_;
  std::vector<Place> places_;
  std::vector<size_t> roots_, order_;  // order_: what is evaluated
  FlatMap<Hash, size_t> numbers_;
  bool has_run_ = false;
  Points points_;
  std::vector<int64_t> axes_;  // at the last run
};

}  // namespace composit::eval
