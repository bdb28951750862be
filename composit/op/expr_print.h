// Writes expressions that share their parts. For printing loops and expressions.
//
//   ExprPrinter printer(text, names);
//   printer.plan({a, b});                     // what may share names
//   printer.locals(a, "\n  ");                // "\n  let t0 = ..." for what `a` needs
//   printer.write(a);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/op/expr.h"

namespace composit {

// The names of leaves: of axes one by one, of parameters where they have one; all others have a
// prefix and their number.
struct LeafNames {
  std::vector<std::string> axes = {}, parameters = {};
  std::string axis = "i", operand = "x", accumulator = "s", left = "left", right = "right",
              parameter = "p", local = "t";
};

class ExprPrinter {
 public:
  ExprPrinter(std::string& text, const LeafNames& names) : text_(text), names_(names) {}

  // Decides which parts of `roots` get a name: those used more than once, and parts of what would
  // be too long. `roots` are written in this order.
  void plan(const std::vector<Expr>& roots);
  // A line for each named part of `root` that has none yet.
  void locals(const Expr& root, std::string_view new_line);
  void write(const Expr& x) { write(x, 0); }
  // A literal without its dtype, which what stands around it gives.
  void write_assigned(const Expr& x) { argument(x, true, 0); }

 private:
  struct Part {
    size_t order = 0;  // among `order_`
    size_t uses = 0;
    size_t operations = 0;  // that would be written in its place
    bool named = false;
    size_t local = 0;  // number of its name, once it is written
  };

  void measure(const Expr& x, Part& part);
  void write(const Expr& x, int precedence);
  void write_part(const Expr& x, int precedence);
  void argument(const Expr& x, bool bare, int precedence);
  void arguments(const Expr& x, char open, char close);
  void call(const Expr& x, int precedence);
  void operation(const Expr& x, const FunctionInfo& info);
  void typed_literal(const Expr& x);
  void leaf(std::string_view prefix, const Expr& x);

  std::string& text_;
  const LeafNames& names_;
  std::vector<Expr> order_;
  size_t next_ = 0;  // of `order_`: parts before it are written
  size_t next_local_ = 0;
  FlatMap<Hash, Part> parts_;
};

}  // namespace composit
