// A rule is a captureless lambda whose parameters mirror the arguments of the schema:
//
//   Rule<Loops> rule = [](In x, Ints dim, bool keepdim) { return sums(x, dim, keepdim); };
//   Loops loops = rule(context);
//
// Parameter types say the role of an argument:
//
// ```text
//   Expr             an element of a tensor, broadcast and cast to the common dtype; or a Scalar
//   Coefficient      a Scalar that takes no part in promotion, cast to the common dtype (alpha)
//   Condition        an element of a tensor, broadcast, that takes no part in promotion (where's)
//   In, LazyTensor   a tensor operand: in the loop form, in graphs
//   Array            its value, in native evaluation
//   std::optional<…> of these, std::vector<…> of these, std::vector<std::optional<…>>
//   bool, int64_t, double, Scalar, std::string, DType, std::vector<int64_t>, std::vector<bool>,
//   std::vector<double>, Region ("Graph" in the schema), Opaque (a class),
//   std::optional<…> of these
//   Vjp              first parameter of a vjp: cotangents and results; stands for no argument
//   RunRegion        first parameter of a native rule: runs the regions; stands for no argument
//   Opening          first parameter of `opened`: draws numbers; stands for no argument
// ```
//
// Trailing arguments may be left out of the parameters. `Rule::check` compares the parameters with
// a schema; the table of operations does so when a row is added.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "composit/ir/array.h"
#include "composit/op/call.h"
#include "composit/op/nest.h"

namespace composit {

// See above.
struct Coefficient : Expr {
  // The same expression in this role.
  explicit Coefficient(Expr x) : Expr(std::move(x)) {}
};
// See above.
struct Condition : Expr {
  // The same expression in this role.
  explicit Condition(Expr x) : Expr(std::move(x)) {}
};

// The arguments of a vjp rule beside those of the operation.
struct Vjp {
  LazyTensors cotangents;    // per result; absent: no gradient
  LazyTensors results;       // results of the forward call
  std::vector<bool> wanted;  // per place of Call::tensors(): whether its gradient is used
  // Runs the reverse walk in the body of a region: from the cotangents of `outputs`, some absent,
  // to those of `inputs`. A result is absent if no gradient reaches that input. The walk stops at
  // `inputs`.
  std::function<LazyTensors(const LazyTensors& outputs, const LazyTensors& inputs,
                            const LazyTensors& cotangents)>
      back = {};
};

// The outputs of a region for values of its inputs.
using RunRegion =
    std::function<std::vector<Array>(const Graph& region, const std::vector<Array>& inputs)>;

// The services for the rule `opened` of an operation with effects.
struct Opening {
  std::vector<Type> results;  // of the captured call
  // Draws numbers of `type` as the operation `name` does, which gets the call's first tensor, its
  // generator, and `attributes`.
  std::function<LazyTensor(const char* name, Attributes attributes, const Type& type)> draw = {};
  // Makes the graph valid only where `number`, of one element, is `expected`.
  std::function<void(const LazyTensor& number, Scalar::Value expected)> expect = {};
};

// The context in which a rule runs. Only the members that its form needs are set.
struct RuleContext {
  const Call* call = nullptr;    // the call
  DType common = DType::count_;  // scalar form: what Expr parameters are cast to
  // Scalar form that computes in float32: what operands are rounded to that are no wide numbers.
  DType half = DType::count_;
  bool* rounds = nullptr;  // scalar form: set where a wide number loses digits in `common`
  const std::vector<Expr>* elements =
      nullptr;  // scalar form: per place of Call::tensors(), the load
  const std::vector<Array>* values = nullptr;  // native: per place of Call::tensors()
  const Vjp* vjp = nullptr;                    // form vjp
  const RunRegion* run = nullptr;              // native
  const Opening* opening = nullptr;            // opened
};

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

// Argument `i` as P; defined in rule.cpp for every P listed above.
template <class P>
P argument(const RuleContext& context, size_t i);
// nullptr if a parameter of type P fits the argument; otherwise a word for P ("a tensor").
template <class P>
const char* mismatch(const SchemaArgument& argument);

// InternalError: "aten::sum.dim_IntList: argument 'dim' (int[1]?) is read as a tensor".
void check_parameter(const Schema& schema, size_t i,
                     const char* (*mismatch)(const SchemaArgument&));

// A first parameter that stands for no argument.
template <class P>
inline constexpr bool kIsService =
    std::is_same_v<P, Vjp> || std::is_same_v<P, RunRegion> || std::is_same_v<P, Opening>;

template <class... P>
struct Parameters {
  static constexpr size_t kSkipped = (size_t{kIsService<P>} + ... + 0);

  template <class F, size_t... I>
  static auto apply(F f, const RuleContext& context, std::index_sequence<I...>) {
    return f(get<P>(context, I)...);
  }
  template <class Q>
  static Q get(const RuleContext& context, size_t i) {
    if constexpr (std::is_same_v<Q, Vjp>)
      return *context.vjp;
    else if constexpr (std::is_same_v<Q, RunRegion>)
      return *context.run;
    else if constexpr (std::is_same_v<Q, Opening>)
      return *context.opening;
    else
      return argument<Q>(context, i - kSkipped);
  }
  // Per parameter that stands for an argument: whether it takes part in promotion.
  static std::vector<bool> promoted() {
    std::vector<bool> result;
    ((kIsService<P>
          ? void()
          : result.push_back(std::is_same_v<P, Expr> || std::is_same_v<P, std::optional<Expr>> ||
                             std::is_same_v<P, std::vector<Expr>>)),
     ...);
    return result;
  }
  static void check(const Schema& schema) {
    [[maybe_unused]] size_t i = 0;
    (check_one<P>(schema, i), ...);
  }
  template <class Q>
  static void check_one(const Schema& schema, size_t& i) {
    if constexpr (!kIsService<Q>) check_parameter(schema, i++, &mismatch<Q>);
  }
};
template <class F>
struct ParametersOf : ParametersOf<decltype(&F::operator())> {};
template <class F, class R, class... P>
struct ParametersOf<R (F::*)(P...) const> : Parameters<std::decay_t<P>...> {
  static constexpr size_t kCount = sizeof...(P);
};

}  // namespace detail

// A rule that gives a `Result`: see above.
template <class Result>
class Rule {
 public:
  constexpr Rule() = default;  // none
  // The rule of a captureless lambda: see above.
  template <class F>
  requires std::is_empty_v<F> && std::is_default_constructible_v<F>
  constexpr Rule(F)  // NOLINT: a lambda is a rule
      : run_([](const RuleContext& context) -> Result {
          using P = detail::ParametersOf<F>;
          return P::apply(F{}, context, std::make_index_sequence<P::kCount>());
        }),
        check_(&detail::ParametersOf<F>::check),
        promoted_(&detail::ParametersOf<F>::promoted) {}

  // A rule for any arguments, which it reads from the context.
  static Rule of_any(Result (*run)(const RuleContext&)) {
    Rule rule;
    rule.run_ = run;
    return rule;
  }

  explicit operator bool() const { return run_ != nullptr; }  // true if there is a rule
  // UserError where the rule refuses.
  Result operator()(const RuleContext& context) const { return run_(context); }
  // InternalError where the parameters do not fit the schema.
  void check(const Schema& schema) const {
    if (check_ != nullptr) check_(schema);
  }
  // Per argument, as far as the rule reads them: whether its dtype counts in promotion.
  std::vector<bool> promoted() const { return promoted_(); }

 private:
  Result (*run_)(const RuleContext&) = nullptr;
  void (*check_)(const Schema&) = nullptr;
  std::vector<bool> (*promoted_)() = nullptr;
};

}  // namespace composit
