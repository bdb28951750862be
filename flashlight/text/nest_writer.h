// Writes one nest of loops as C++.
//
//   Code code = NestWriter(statement, order, context).write();
//
// A sum of products becomes a call of fl::product, another sum with a long innermost axis one of
// fl::sum, everything else loops. Predicates of the domain become bounds of loops if they can.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"
#include "flashlight/text/expression.h"

namespace flashlight::text {

using namespace loops;

// The first of i, j, k, …, z, i1, j1, … that is free.
std::string loop_name(const std::function<bool(const std::string& name)>& is_free);

// The surroundings of a nest.
struct NestContext {
  std::vector<std::string> loops;  // variables of the loops around it: the first axes of `order`
  std::function<Element(ValueId value, const std::vector<std::string>& indices)> element;
  std::function<const Type&(ValueId value)> type;
  std::function<std::optional<std::pair<int64_t, int64_t>>(ValueId value)> range;
  std::function<std::string(ValueId value)> name;
  std::function<void(ValueId value)> mention;  // called with values whose elements are written
  // True if the store to `value` declares it: it is a number that only this scope uses.
  std::function<bool(ValueId value)> declares;
  std::set<std::string>* taken = nullptr;  // names that are in use in the function
  // Loops alone, without functions of the runtime and hints for C++ compilers: in a kernel.
  bool plain = false;
};

// Adds to an element of memory: "x[i] += 2.0f;".
Code added(const std::string& element, ExpressionWriter& text, const Expr& value,
           composit::DType dtype);

class NestWriter {
 public:
  // `order`: parallel axes from the outside in.
  NestWriter(const Statement& statement, const AxisIds& order, const NestContext& context);
  Code write();

 private:
  struct Bounds {
    std::map<AxisId, std::pair<std::vector<std::string>, std::vector<std::string>>> limits;
    std::vector<Expr> conditions;  // predicates that are no bounds
  };

  Code elementwise();
  Code reduction();
  Code folded(const std::string& function);
  Call fold_call(const std::string& function);
  bool accumulates_in_result() const;
  Code reduction_outside();
  Code accumulated();
  Code product(Contraction contraction);

  std::string name_axis(AxisId axis);
  void name_axes(const AxisIds& axes);
  // For loops over `axes` in this order. A predicate `axis + rest >= 0` or `rest - axis >= 0`
  // bounds the innermost axis that it has.
  Bounds bounds_of(const AxisIds& axes, const std::vector<Expr>& predicates);
  Bounds bounds_of(const AxisIds& axes) {
    return bounds_of(axes, composit::conjuncts(statement_.domain));
  }
  For header(AxisId axis, const Bounds& bounds = {}) const;
  // `rolled`: the compiler must not unroll the innermost loop.
  Code loops(const AxisIds& axes, const Bounds& bounds, Code body, bool rolled = false) const;
  Code guarded(const std::vector<Expr>& conditions, Code body);
  Code stores(ExpressionWriter& writer, bool declare);
  Code store(ExpressionWriter& writer, const composit::Store& store, bool declare);
  Code update();
  std::string accumulator_name(size_t number);

  struct Side {
    std::string index;
    int64_t size = 1;
  };
  Side side(const AxisIds& axes, const char* letters);
  bool is_place(const Expr& side) const;
  Lambda lambda(const std::string& parameters, const Expr& value, const Expr& domain);
  std::string limited(int64_t size, const AxisIds& axes, const std::vector<Expr>& limits,
                      const std::string& row, const std::string& base, Code& code);

  ExpressionWriter writer() { return {leaves_, statement_.axes, *context_.taken}; }
  bool has_named_extents(const AxisIds& axes) const;
  AxisIds axes_of(composit::AxisKind kind) const;

  Statement statement_;
  AxisIds rest_;  // parallel axes that are not loops around it
  const NestContext& context_;
  Leaves leaves_;
  std::set<std::string> loop_names_;
  bool guarded_update_ = false;  // update() reads elements under conditions
};

}  // namespace flashlight::text
