#include "flashlight/scalar/number.h"

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "flashlight/scalar/ranges.h"

namespace flashlight {
namespace {

using composit::Expr;
using composit::UserError;

// Runs a function once per path, depth first, and joins the results on the way back up.
class Paths {
 public:
  explicit Paths(const TraceLimits& limits) : limits_(limits), outer_(current_) { current_ = this; }
  ~Paths() { current_ = outer_; }
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  static Paths& current() {
    if (current_ == nullptr)
      throw UserError(
          "[scalar] a comparison of symbolic numbers became a bool outside of a traced "
          "function");
    return *current_;
  }

  // The first path takes every decision as true; each further one turns the last of these.
  std::vector<Expr> run(const std::function<std::vector<Expr>()>& f) {
    for (size_t paths = 1;; ++paths) {
      if (paths > limits_.paths)
        throw UserError("[scalar] more than " + std::to_string(limits_.paths) +
                        " paths: decisions that follow each other multiply; decide less often, "
                        "with `select`, or loop with while_loop");
      begin_path();
      std::vector<Expr> results = f();
      while (!decisions_.empty() && !decisions_.back().taken) {
        results = joined(decisions_.back(), results);
        decisions_.pop_back();
      }
      if (decisions_.empty()) return results;
      decisions_.back().taken = false;
      decisions_.back().if_true = std::move(results);
    }
  }

  bool decide(const Expr& condition) {
    // A condition and its negation are one decision.
    if (condition.is(composit::Function::logical_not)) return !decide(condition[0]);
    if (condition.kind() == composit::ExprKind::literal) return std::get<bool>(condition.value());
    if (const bool* known = known_.find(condition.hash())) return *known;
    if (const auto implied = ranges_.implied(condition)) return *implied;
    if (next_ == decisions_.size()) {
      if (decisions_.size() == limits_.decisions)
        throw UserError("[scalar] more than " + std::to_string(limits_.decisions) +
                        " comparisons on one path: an unbounded loop? use while_loop");
      decisions_.push_back({condition, true, {}});
    }
    const Decision& decision = decisions_[next_++];
    if (!decision.condition.same(condition))
      throw UserError(
          "[scalar] expected a function that does the same whenever it is called, "
          "received one that compares something else the second time");
    known_.insert(condition.hash(), decision.taken);
    ranges_.learn(condition, decision.taken);
    return decision.taken;
  }

 private:
  struct Decision {
    Expr condition;
    bool taken = true;
    std::vector<Expr> if_true;  // the results, once `taken` is false
  };

  void begin_path() {
    next_ = 0;
    known_ = {};
    ranges_ = {};
  }
  static std::vector<Expr> joined(const Decision& decision, const std::vector<Expr>& if_false) {
    if (decision.if_true.size() != if_false.size())
      throw UserError("[scalar] expected as many results on all paths, received " +
                      std::to_string(decision.if_true.size()) + " and " +
                      std::to_string(if_false.size()));
    std::vector<Expr> results;
    for (size_t i = 0; i < if_false.size(); ++i)
      results.push_back(select(decision.condition, decision.if_true[i], if_false[i]));
    return results;
  }

  static thread_local Paths* current_;
  const TraceLimits& limits_;
  Paths* outer_;
  std::vector<Decision> decisions_;
  composit::FlatMap<composit::Hash, bool> known_;  // on this path
  Ranges ranges_;                                  // the same
  size_t next_ = 0;
};

thread_local Paths* Paths::current_ = nullptr;

}  // namespace

Truth::operator bool() const { return Paths::current().decide(expr_); }

composit::ScalarProgram trace_numbers(size_t parameters,
                                      const std::function<Numbers(const Numbers&)>& f,
                                      const TraceLimits& limits) {
  composit::ScalarProgram program{parameters, composit::DType::float64, {}};
  Numbers arguments;
  for (size_t i = 0; i < parameters; ++i) arguments.emplace_back(program.parameter(i));
  Paths paths(limits);
  program.results = paths.run([&] {
    std::vector<Expr> results;
    for (const Number& number : f(arguments)) results.push_back(number.expr());
    return results;
  });
  return program;
}

}  // namespace flashlight
