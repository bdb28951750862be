#include "flashlight/loops/unify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/hash.h"
#include "composit/ir/literal.h"
#include "composit/ir/print.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/verify.h"

namespace flashlight::loops {
namespace {

using Numbers = std::vector<int64_t>;  // one per program

std::string joined(const Numbers& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return text;
}

template <class T>
bool all_same(const std::vector<T>& list) {
  return std::all_of(list.begin(), list.end(), [&](const T& one) { return one == list.front(); });
}

// The value of a literal that is an integer, of whatever dtype.
std::optional<int64_t> whole_number(const Expr& x) {
  constexpr double kMost = 1 << 24;  // float32 has all of them
  if (const auto* integer = std::get_if<int64_t>(&x.value())) return *integer;
  const auto* real = std::get_if<double>(&x.value());
  if (real == nullptr || std::abs(*real) >= kMost || std::trunc(*real) != *real)
    return std::nullopt;
  return static_cast<int64_t>(*real);
}

// ---- sizes --------------------------------------------------------------------------------------

// Finds or adds the named size for each list of numbers that differ.
class Sizes {
 public:
  Sizes(Table<SizeId, NamedSize>& sizes, bool adds) : sizes_(sizes), adds_(adds) {}

  void give(const Numbers& numbers, std::string name) {
    if (all_same(numbers) || known_.count(numbers) > 0) return;
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    given_.push_back(add(numbers, {.name = free_name(std::move(name)),
                                   .example = numbers[0],
                                   .least = *least,
                                   .most = *most}));
  }
  size_t given() const { return given_.size(); }

  // The size with these numbers; nothing if they do not differ. `where` is for the error, `name` for
  // a size of its own.
  std::optional<SizeId> of(const Numbers& numbers, const std::string& where,
                           const std::string& name) {
    if (all_same(numbers)) return std::nullopt;
    if (const auto found = settled_.find(numbers); found != settled_.end()) return found->second;
    std::vector<NamedSize> forms = forms_of(numbers);
    if (adds_ && forms.empty()) {
      give(numbers, name);
      forms = {sizes_[given_.back()]};
    }
    if (forms.empty() || (forms.size() > 1 && !adds_)) fail(numbers, forms, where);
    const auto known = known_.find(numbers);
    const SizeId size = known != known_.end() ? known->second : add(numbers, forms[0]);
    settled_.emplace(numbers, size);
    return size;
  }

 private:
  SizeId add(const Numbers& numbers, NamedSize size) {
    const SizeId id = sizes_.add(std::move(size));
    known_.emplace(numbers, id);
    numbers_.push_back(numbers);
    return id;
  }

  std::string free_name(std::string name) const {
    for (char& c : name)
      if (!is_size_char(c)) c = '_';
    if (name.empty() || !composit::is_word_start(name[0])) name = "size_" + name;
    const auto taken = [&](const NamedSize& size) { return size.name == name; };
    while (!is_size_name(name) || std::any_of(sizes_.begin(), sizes_.end(), taken)) name += '_';
    return name;
  }

  // All formulas by which `numbers` follow from the given sizes.
  std::vector<NamedSize> forms_of(const Numbers& numbers) const {
    std::vector<NamedSize> forms;
    for (size_t i = 0; i < given_.size(); ++i) {
      const SizeId a = given_[i];
      linear_forms(numbers, a, forms);
      for (size_t j = i; j < given_.size(); ++j) {
        const SizeId b = given_[j];
        Numbers products;
        for (size_t k = 0; k < numbers.size(); ++k)
          products.push_back(numbers_[a][k] * numbers_[b][k]);
        if (const auto k = ratio(numbers, products))
          forms.push_back(follows(times(*k) + sizes_[a].name + "_by_" + sizes_[b].name, numbers,
                                  {a, b}, *k, 1, 0));
      }
    }
    return forms;
  }
  void linear_forms(const Numbers& numbers, SizeId size, std::vector<NamedSize>& forms) const {
    const Numbers& from = numbers_[size];
    const std::string& name = sizes_[size].name;
    if (const auto k = ratio(numbers, from)) {
      forms.push_back(*k == 1 ? sizes_[size]
                              : follows(times(*k) + name, numbers, {size}, *k, 1, 0));
      return;
    }
    if (const auto k = ratio(from, numbers); k && *k > 1)
      forms.push_back(follows(name + "_over_" + std::to_string(*k), numbers, {size}, 1, *k, 0));
    Numbers differences, sums;
    for (size_t i = 0; i < numbers.size(); ++i) {
      differences.push_back(numbers[i] - from[i]);
      sums.push_back(numbers[i] + from[i]);
    }
    const auto apart = [&](int64_t c) {
      return (c < 0 ? "_minus_" : "_plus_") + std::to_string(std::abs(c));
    };
    if (all_same(differences))
      forms.push_back(follows(name + apart(differences[0]), numbers, {size}, 1, 1, differences[0]));
    if (all_same(sums))
      forms.push_back(follows("minus_" + name + apart(sums[0]), numbers, {size}, -1, 1, sums[0]));
  }
  // The k for which a[i] == k * b[i] for all i.
  static std::optional<int64_t> ratio(const Numbers& a, const Numbers& b) {
    if (b[0] == 0) return std::nullopt;
    const int64_t k = a[0] / b[0];
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != k * b[i]) return std::nullopt;
    return k;
  }
  static std::string times(int64_t k) {
    if (k == 1) return "";
    return k < 0 ? "minus_" + (k == -1 ? "" : std::to_string(-k) + "_")
                 : "x" + std::to_string(k) + "_";
  }
  NamedSize follows(const std::string& name, const Numbers& numbers, std::vector<SizeId> of,
                    int64_t factor, int64_t divisor, int64_t added) const {
    return {.name = free_name(name),
            .example = numbers[0],
            .of = std::move(of),
            .factor = factor,
            .divisor = divisor,
            .added = added};
  }

  [[noreturn]] void fail(const Numbers& numbers, const std::vector<NamedSize>& forms,
                         const std::string& where) const {
    Program names;
    names.sizes = sizes_;
    if (!forms.empty())
      throw composit::UserError("[unify] expected " + where +
                                " to follow from sizes in one way, received " + joined(numbers) +
                                ", which are " + print(names, forms[0]) + " and also " +
                                print(names, forms[1]) + ": one more program tells them apart");
    std::string given;
    for (const SizeId i : given_)
      given += (given.empty() ? "" : "; ") + sizes_[i].name + " of " + joined(numbers_[i]);
    throw composit::UserError("[unify] expected " + where + " to be the same, or to follow from " +
                              (given.empty() ? "a size of an argument" : given) + ", received " +
                              joined(numbers));
  }

  Table<SizeId, NamedSize>& sizes_;
  const bool adds_;            // sizes for numbers that follow from no others
  std::vector<SizeId> given_;  // of sizes_
  Table<SizeId, Numbers> numbers_;
  std::map<Numbers, SizeId> known_, settled_;  // settled: sizes known to have one formula only
};

// ---- programs -----------------------------------------------------------------------------------

class Unifier {
 public:
  Unifier(const std::vector<Program>& programs, bool adds)
      : programs_(programs), unified_(programs.at(0)), sizes_(unified_.sizes, adds) {}

  Program run(const UnifyOptions& options) {
    same_counts("functions", [](const Program& one) { return one.functions.size(); });
    for (const FunctionId i : unified_.functions.ids()) interface(i);
    give(options.names);
    if (options.reads_numbers)
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
    for (const ValueId value : unified_.functions[i].values.ids()) same_value(i, value);
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
    same("constants", [&](const Program& one) {
      const Array& constant = get(one).constant;
      return constant.defined() ? constant.content_hash() : composit::Hash();
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
      const auto nests = each([&](const Program& one) {
        return std::get_if<Nest>(&one.functions[i].steps[step]);
      });
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
      const std::optional<int64_t> number = whole_number(part);
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
  Program unified_;
  Sizes sizes_;
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

SizeNumbers numbers_in(const Program& open, const Program& program) {
  SizeNumbers numbers;
  const auto take = [&](const SizeIds& named, const auto& number) {
    for (size_t i = 0; i < named.size(); ++i)
      if (named[i] && open.sizes[*named[i]].of.empty())
        numbers.emplace(open.sizes[*named[i]].name, number(i));
  };
  const auto same = [](size_t a, size_t b) {
    if (a != b) throw composit::UserError("[bind] expected a program of the same form");
  };
  same(open.functions.size(), program.functions.size());
  for (const FunctionId f : open.functions.ids()) {
    const Routine &from = open.functions[f], &to = program.functions[f];
    same(from.values.size(), to.values.size());
    same(from.steps.size(), to.steps.size());
    for (const ValueId value : from.values.ids()) {
      const composit::Dims& sizes = to.values[value].type.sizes;
      same(from.values[value].type.rank(), sizes.size());
      take(from.values[value].named, [&](size_t i) { return sizes[i]; });
    }
    for (const StepId step : from.steps.ids()) {
      const auto *a = std::get_if<Nest>(&from.steps[step]), *b = std::get_if<Nest>(&to.steps[step]);
      same(a == nullptr, b == nullptr);
      if (a == nullptr) continue;
      same(a->statement.axes.size(), b->statement.axes.size());
      take(a->named, [&](size_t i) { return b->statement.axes.at(i).extent; });
    }
  }
  for (const NamedSize& size : open.sizes)
    if (size.of.empty() && !numbers.contains(size.name))
      throw composit::UserError("[bind] expected '" + size.name +
                                "' to be a size of a value or the extent of a loop");
  return numbers;
}

}  // namespace flashlight::loops
