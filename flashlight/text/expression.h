// Writes scalar expressions as C++.
//
//   ExpressionWriter writer(leaves, axes);
//   writer.plan({value});                 // parts that are used more than once get names
//   Code code = writer.locals({value});   // const float exp_x = fl::exp(x[i]);
//   writer.text(value);                   // "exp_x / (1.0f + exp_x)"
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/op/affine.h"
#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::text {

using namespace loops;

// Writes the leaves of expressions.
struct Leaves {
  std::vector<std::string> axes;  // by number
  std::set<AxisId> parts = {};    // axes whose text is a part of another index: "k / 3 % 3"
  // Writes an element of `value`; its indices are text already.
  std::function<Element(ValueId value, const std::vector<std::string>& indices)> element;
  // Called with each value whose elements are written; may be left out.
  std::function<void(ValueId value)> mention = {};
  std::function<const Type&(ValueId value)> type;
  // The range of a value's elements, if it is known.
  std::function<std::optional<std::pair<int64_t, int64_t>>(ValueId value)> range;
  std::vector<Element> accumulators = {}, left = {}, right = {};
  const char* index_type = text::index_type();  // of axes, and of indices computed from them
};

class ExpressionWriter {
 public:
  // `taken`: names that locals must not have, to which theirs are added. Both must outlive this.
  ExpressionWriter(const Leaves& leaves, const std::vector<composit::Axis>& axes,
                   std::set<std::string>& taken);

  // Chooses names for parts of `roots`, all of which are evaluated, in this order.
  void plan(const std::vector<Expr>& roots);
  // Declarations of the parts of `root` that have a name and are not declared yet.
  Code locals(const Expr& root);
  ExpressionText expression(const Expr& x) { return write(x, 0); }
  // As what is added to something.
  ExpressionText addend(const Expr& x);
  // "target += x;"
  Code add(const std::string& target, const Expr& x);
  std::string text(const Expr& x) { return expression(x).str(); }
  // An index of an element along an axis of `extent`: checked where loaded elements decide it, and
  // it is not known to be in range.
  std::string index(const Expr& x, int64_t extent);
  // True if an element is read under a condition only, because its index may be out of range.
  bool has_guarded_reads() const;
  // "target = x;", or if and else if x is a select that does not fit a line.
  Code assign(const Element& target, const Expr& x);

 private:
  struct Part {
    size_t uses = 0;
    bool always = false;  // evaluated whichever branch is taken
    bool named = false;
    std::string name = {};  // once it is declared
  };

  void mark_always(const std::vector<Expr>& roots);
  bool is_safe(const Expr& x);
  bool deserves_name(const Expr& x, const Part& part);
  void split_long(const Expr& root);
  std::string fresh_name(const Expr& x);
  bool fits_line(const std::string& target, const Expr& x);
  Code branches(const std::string& target, const Expr& x);

  ExpressionText write(const Expr& x, int precedence);
  ExpressionText write_part(const Expr& x, int precedence);
  ExpressionText call(const Expr& x, int precedence);
  bool may_wrap(const Expr& x);
  ExpressionText operation(const Expr& x, int precedence);
  ExpressionText select(const Expr& x, int precedence);
  ExpressionText division(const Expr& x, int precedence);
  ExpressionText cast(const Expr& x);
  ExpressionText load(const Expr& x);
  bool is_index_of_load(const Expr& x) const;
  bool is_known_inside(const Expr& index, int64_t extent);
  std::string number(const Expr& x);

  const Leaves& leaves_;
  composit::IndexAnalysis analysis_;
  std::set<std::string>& taken_;
  std::vector<Expr> order_;
  composit::FlatMap<composit::Hash, Part> parts_;
  bool wide_ = false;      // an index may leave int
  bool measures_ = false;  // the text is measured, not kept
};

}  // namespace flashlight::text
