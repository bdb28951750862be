#include "flashlight/loops/unify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/hash.h"
#include "composit/ir/literal.h"
#include "composit/ir/print.h"
#include "flashlight/loops/size_finder.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/verify.h"

namespace flashlight::loops {
namespace {

// The value of a literal that is an integer, of whatever dtype.
std::optional<int64_t> whole_number(const Expr& x) {
  constexpr double kMost = 1 << 24;  // float32 has all of them
  if (const auto* integer = std::get_if<int64_t>(&x.value())) return *integer;
  const auto* real = std::get_if<double>(&x.value());
  if (real == nullptr || std::abs(*real) >= kMost || std::trunc(*real) != *real)
    return std::nullopt;
  return static_cast<int64_t>(*real);
}

class Unifier {
 public:
  Unifier(const std::vector<Program>& programs, bool reads_numbers)
      : programs_(programs),
        reads_numbers_(reads_numbers),
        unified_(programs.at(0)),
        sizes_(unified_.sizes, reads_numbers) {}

  Program run(const UnifyOptions& options) {
    same_counts("functions", [](const Program& one) { return one.functions.size(); });
    for (const FunctionId i : unified_.functions.ids()) interface(i);
    give(options.names);
    if (reads_numbers_)
      for (const FunctionId i : unified_.functions.ids()) sizes_of(i);
    for (const FunctionId i : unified_.functions.ids()) function(i);
    return std::move(unified_);
  }

 private:
  // Applies `get` to each program.
  template <class Get>
  auto each(const Get& get) const {
    std::vector<std::decay_t<decltype(get(programs_[0]))>> list;
    for (const Program& one : programs_) list.push_back(get(one));
    return list;
  }
  [[noreturn]] void fail(const std::string& difference) const {
    throw composit::UserError("[unify] expected programs of one form, received " + difference +
                              (where_.empty() ? "" : " in " + where_));
  }
  template <class Get>
  void same_counts(const char* what, const Get& get) const {
    const auto counts = each([&](const Program& one) { return static_cast<int64_t>(get(one)); });
    if (!all_same(counts)) fail(joined(counts) + " " + what);
  }
  template <class Get>
  void same(const char* what, const Get& get) const {
    if (!all_same(each(get))) fail(std::string("different ") + what);
  }

  // Fails unless `member` of get(program) is equal in all programs.
  template <class Get, class Member>
  void same_member(const Get& get, const char* what, Member member) const {
    same(what, [&](const Program& one) { return get(one).*member; });
  }

  void interface(FunctionId i) {
    where_ = "function '" + unified_.functions[i].name + "'";
    const auto counts = [&](const char* what, auto member) {
      same_counts(what, [&](const Program& one) { return (one.functions[i].*member).size(); });
    };
    counts("values", &Routine::values);
    counts("steps", &Routine::steps);
    const auto equal = [&](const char* what, auto member) {
      same_member([&](const Program& one) -> const Routine& { return one.functions[i]; }, what,
                  member);
    };
    equal("inputs", &Routine::inputs);
    equal("results", &Routine::results);
    equal("overwritten inputs", &Routine::overwrites);
    equal("kinds of function", &Routine::is_part);
    equal("kinds of function", &Routine::is_loop_body);
    equal("kinds of function", &Routine::in_parts);
    equal("lengths of loops", &Routine::most_steps_in_loop);
    const std::set<ValueId> read = values_read(i);
    for (const ValueId value : unified_.functions[i].values.ids()) {
      same_value(i, value);
      // A number that stands in statements is no value that is read.
      if (read.contains(value)) same_constant(i, value);
    }
  }
  // By a step, or as a result, in some program.
  std::set<ValueId> values_read(FunctionId i) const {
    std::set<ValueId> all;
    for (const Program& one : programs_) {
      const Routine& function = one.functions[i];
      all.insert(function.inputs.begin(), function.inputs.end());
      all.insert(function.results.begin(), function.results.end());
      for (const Step& step : function.steps)
        for (const ValueId value : reads(step)) all.insert(value);
    }
    return all;
  }
  void same_constant(FunctionId i, ValueId value) {
    where_ = named(i, value);
    same("constants", [&](const Program& one) {
      const Array& constant = one.functions[i].values[value].constant;
      return constant.defined() ? constant.content_hash() : composit::Hash();
    });
  }
  std::string named(FunctionId i, ValueId value) const {
    const Routine& function = unified_.functions[i];
    return "value %" + std::to_string(value) + " '" + function.values[value].name +
           "' of function '" + function.name + "'";
  }
  void same_value(FunctionId i, ValueId value) {
    where_ = named(i, value);
    const auto get = [&](const Program& one) -> const Value& {
      return one.functions[i].values[value];
    };
    same("roles", [&](const Program& one) { return get(one).role; });
    same_counts("axes", [&](const Program& one) { return get(one).type.rank(); });
    same_counts("axes in the model",
                [&](const Program& one) { return get(one).model_sizes.size(); });
    same("types", [&](const Program& one) {
      Type type = get(one).type;
      if (composit::is_contiguous(type)) type.strides.clear();
      type.sizes.clear();
      return type;
    });
  }

  void give(const std::vector<std::string>& names) {
    const FunctionId last(unified_.functions.size() - 1);
    const Routine& function = unified_.functions[last];
    for (const ValueId input : function.inputs) {
      const Value& value = function.values[input];
      if (value.role != Role::argument || value.constant.defined()) continue;
      for (size_t axis = 0; axis < value.type.rank(); ++axis)
        sizes_.give(each([&](const Program& one) {
                      return one.functions[last].values[input].type.sizes[axis];
                    }),
                    sizes_.given() < names.size() ? names[sizes_.given()]
                                                  : value.name + "_" + std::to_string(axis));
    }
    if (!names.empty() && names.size() != sizes_.given())
      throw composit::UserError("[unify] expected names for " + std::to_string(sizes_.given()) +
                                " sizes, received " + std::to_string(names.size()));
  }

  // Sizes of values and extents of axes, from which numbers in expressions may follow.
  void sizes_of(FunctionId i) {
    for (const ValueId value : unified_.functions[i].values.ids())
      integers(named(i, value), unified_.functions[i].values[value].name,
               [&](const Program& one) -> const composit::Dims& {
                 return one.functions[i].values[value].type.sizes;
               });
    for (const StepId step : unified_.functions[i].steps.ids()) {
      const auto nests = each(
          [&](const Program& one) { return std::get_if<Nest>(&one.functions[i].steps[step]); });
      const auto axes = [&](const Nest* nest) {
        return nest == nullptr ? size_t{0} : nest->statement.axes.size();
      };
      for (size_t axis = 0; axis < axes(nests[0]); ++axis) {
        Numbers extents;
        for (const Nest* nest : nests)
          if (axis < axes(nest)) extents.push_back(nest->statement.axes.at(axis).extent);
        if (extents.size() == nests.size()) sizes_.of(extents, "an extent", "extent");
      }
    }
  }

  void function(FunctionId i) {
    for (const ValueId value : unified_.functions[i].values.ids()) {
      Value& one = unified_.functions[i].values[value];
      const auto of = [&](const Program& from) -> const Value& {
        return from.functions[i].values[value];
      };
      const std::string where = named(i, value);
      using DimsOf = const composit::Dims&;
      one.named = integers(where, one.name,
                           [&](const Program& from) -> DimsOf { return of(from).type.sizes; });
      one.model_named = integers(
          where, one.name, [&](const Program& from) -> DimsOf { return of(from).model_sizes; });
    }
    for (const StepId step : unified_.functions[i].steps.ids()) {
      where_ = "step " + std::to_string(step) + " (" +
               place_of(origin_of(unified_.functions[i].steps[step])) + ") of function '" +
               unified_.functions[i].name + "'";
      same_counts("kind of step",
                  [&](const Program& one) { return one.functions[i].steps[step].index(); });
      std::visit(
          [&]<class Kind>(Kind& one) {
            steps(one, [&](const Program& from) -> const Kind& {
              return std::get<Kind>(from.functions[i].steps[step]);
            });
          },
          unified_.functions[i].steps[step]);
    }
  }
  // The named sizes of the lists that `get` returns, which have equal lengths.
  template <class Get>
  SizeIds integers(const std::string& where, const std::string& name, const Get& get) {
    SizeIds named;
    for (size_t k = 0; k < get(unified_).size(); ++k)
      named.push_back(sizes_.of(each([&](const Program& one) { return get(one)[k]; }),
                                "axis " + std::to_string(k) + " of " + where,
                                (name.empty() ? "size" : name) + "_" + std::to_string(k)));
    const auto is_number = [](const auto& one) { return !one.has_value(); };
    return std::all_of(named.begin(), named.end(), is_number) ? SizeIds() : named;
  }

  // ---- steps ----

  template <class Get>
  void steps(Invocation&, const Get& get) const {
    same_member(get, "callees", &Invocation::function);
    same_member(get, "arguments", &Invocation::arguments);
    same_member(get, "results", &Invocation::results);
  }

  template <class Get>
  void steps(Control& control, const Get& get) {
    const auto equal = [&](const char* what, auto member) { same_member(get, what, member); };
    equal("kinds", &Control::kind);
    equal("bodies", &Control::functions);
    equal("carried values", &Control::carried);
    equal("sequences", &Control::sequences);
    equal("values from outside", &Control::outside);
    equal("predicates", &Control::predicate);
    equal("trips", &Control::trips);
    equal("limits", &Control::limit);
    equal("directions", &Control::reverse);
    equal("results", &Control::results);
    equal("carried values", &Control::next);
    equal("blocks", &Control::block);
    equal("axes of blocks", &Control::along);
    control.named_length = sizes_.of(each([&](const Program& one) { return get(one).length; }),
                                     "the length of " + where_, "length");
  }

  template <class Get>
  void steps(RuntimeCall&, const Get& get) const {
    const auto equal = [&](const char* what, auto member) { same_member(get, what, member); };
    equal("functions of the runtime", &RuntimeCall::function);
    equal("arguments", &RuntimeCall::arguments);
    equal("options", &RuntimeCall::options);
    equal("results", &RuntimeCall::results);
    equal("effects", &RuntimeCall::effect);
    equal("draws", &RuntimeCall::draws);
    equal("kinds of arguments", &RuntimeCall::on_numbers);
    same("schemas", [&](const Program& one) {
      return get(one).schema ? composit::print(*get(one).schema) : std::string();
    });
  }

  template <class Get>
  void steps(Nest& nest, const Get& get) {
    const auto counts = [&](const char* what, const auto& list) {
      same_counts(what, [&](const Program& one) { return list(get(one).statement); });
    };
    counts("axes", [](const Statement& one) { return one.axes.size(); });
    counts("accumulators", [](const Statement& one) { return one.init.size(); });
    counts("accumulators", [](const Statement& one) { return one.combine.size(); });
    counts("accumulators", [](const Statement& one) { return one.body.size(); });
    counts("stores", [](const Statement& one) { return one.stores.size(); });
    for (size_t k = 0; k < nest.statement.axes.size(); ++k)
      same("kinds of axes", [&](const Program& one) { return get(one).statement.axes[k].kind; });
    for (size_t k = 0; k < nest.statement.stores.size(); ++k) {
      const auto store = [&](const Program& one) -> const composit::Store& {
        return get(one).statement.stores[k];
      };
      same("results", [&](const Program& one) { return store(one).result; });
      same("stores", [&](const Program& one) { return store(one).add; });
      same_counts("indices", [&](const Program& one) { return store(one).at.size(); });
    }
    nest.named = integers(where_, "extent", [&](const Program& one) {
      Numbers extents;
      for (const composit::Axis& axis : get(one).statement.axes) extents.push_back(axis.extent);
      return extents;
    });
    const auto all = each([&](const Program& one) { return expressions(get(one).statement); });
    std::vector<Expr> merged;
    for (size_t k = 0; k < all[0].size(); ++k) {
      Exprs same_place;
      for (const auto& list : all) same_place.push_back(list[k]);
      merged.push_back(unified(same_place));
    }
    nest.statement = with_expressions(std::move(nest.statement), merged);
    nest.recognised = nullptr;  // it was, of a statement of numbers
  }

  // ---- expressions ----

  using Exprs = std::vector<Expr>;  // the same subexpression of all programs

  Expr unified(const Exprs& roots) {
    const auto defined = [](const Expr& x) { return x.defined(); };
    const auto count = std::count_if(roots.begin(), roots.end(), defined);
    if (count == 0) return Expr();
    if (count != static_cast<std::ptrdiff_t>(roots.size())) fail("different domains");
    composit::FlatMap<composit::Hash, Expr> known;
    std::vector<Exprs> open = {roots};
    while (!open.empty()) {
      const Exprs parts = open.back();
      if (known.find(key(parts)) != nullptr) {
        open.pop_back();
        continue;
      }
      same_kind(parts);
      std::vector<Expr> arguments;
      const size_t waiting = open.size();
      for (size_t k = 0; k < parts[0].arguments().size(); ++k) {
        Exprs inner;
        for (const Expr& part : parts) inner.push_back(part.arguments()[k]);
        const Expr* found = known.find(key(inner));
        if (found == nullptr)
          open.push_back(std::move(inner));
        else
          arguments.push_back(*found);
      }
      if (open.size() == waiting) known.insert(key(parts), merged(parts, std::move(arguments)));
    }
    return *known.find(key(roots));
  }
  static composit::Hash key(const Exprs& parts) {
    composit::Hasher hasher;
    for (const Expr& part : parts) hasher.add(part.hash());
    return hasher.finish();
  }
  static bool is_equal(const Exprs& parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Expr& part) { return part.hash() == parts[0].hash(); });
  }
  void same_kind(const Exprs& parts) const {
    for (const Expr& part : parts) {
      const Expr& first = parts[0];
      const bool leaf = part.kind() != ExprKind::literal && part.kind() != ExprKind::call;
      if (part.kind() != first.kind() || part.dtype() != first.dtype() ||
          part.arguments().size() != first.arguments().size() ||
          (leaf && part.number() != first.number()) ||
          (part.kind() == ExprKind::call && part.function() != first.function()))
        fail("the expressions " + composit::print(first) + " and " + composit::print(part));
    }
  }
  Expr merged(const Exprs& parts, std::vector<Expr> arguments) {
    if (is_equal(parts)) return parts[0];
    if (parts[0].kind() != ExprKind::literal) return parts[0].with_arguments(std::move(arguments));
    Numbers numbers;
    for (const Expr& part : parts) {
      const bool is_integer = std::holds_alternative<int64_t>(part.value());
      // A program that is bound is compared with one that has the same float.
      const auto number = is_integer || reads_numbers_ ? whole_number(part) : std::nullopt;
      if (!number) {
        std::string all;
        for (const Expr& one : parts) all += (all.empty() ? "" : ", ") + composit::print(one);
        fail("the numbers " + all);
      }
      numbers.push_back(*number);
    }
    const auto size = sizes_.of(numbers, "a number of " + where_, "number");
    return composit::cast(Expr::parameter(*size, composit::DType::int64), parts[0].dtype());
  }

  const std::vector<Program>& programs_;
  const bool reads_numbers_;
  Program unified_;
  SizeFinder sizes_;
  std::string where_;  // the function, value or step at hand, for errors
};

}  // namespace

Program unify(const std::vector<Program>& programs, const UnifyOptions& options) {
  if (programs.size() < 2)
    throw composit::UserError("[unify] expected two programs or more, received " +
                              std::to_string(programs.size()));
  for (const Program& program : programs) expect_bound("unify", program);
  Program program = Unifier(programs, options.reads_numbers).run(options);
  return options.reads_numbers ? program : checked("unify", std::move(program));
}

}  // namespace flashlight::loops
