#include "composit/interchange/pt2_read/dynamic.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/saved_family.h"
#include "composit/family/unify.h"
#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

constexpr int64_t kLeast = 2;           // 1 broadcasts, and 0 has no elements
constexpr int64_t kGreatest = 1 << 14;  // where the file knows no end
constexpr size_t kExamples = 7;  // a prime: symbols walk through values in steps of their own
constexpr size_t kMostSymbols = kExamples - 1;
constexpr size_t kMostWanted = 20;  // further examples

const Json& graph_in(const Json& program) { return field(field(program, "graph_module"), "graph"); }

// The text of a size that is an expression; empty for an integer.
std::string expression_of(const Json& size) {
  const Json* expression = find_field(size, "as_expr");
  return expression == nullptr ? "" : text_of(field(*expression, "expr_str"));
}

// The names of arguments that are tensors, in order.
std::vector<std::string> tensor_arguments(const Json& program) {
  std::vector<std::string> names;
  const Json& signature = field(field(program, "graph_module"), "signature");
  for (const Json& spec : list_of(field(signature, "input_specs"))) {
    const auto [kind, content] = only_field(spec);
    if (kind != "user_input") continue;
    const auto [argument, value] = only_field(field(*content, "arg"));
    if (argument == "as_tensor") names.push_back(text_of(field(*value, "name")));
  }
  return names;
}

// The bounds that a file notes of a symbol.
int64_t bound_of(const Json& program, const std::string& symbol, const char* key, int64_t other) {
  const Json* ranges = find_field(program, "range_constraints");
  const Json* range = ranges == nullptr ? nullptr : find_field(*ranges, symbol.c_str());
  const Json* bound = range == nullptr ? nullptr : find_field(*range, key);
  return bound == nullptr ? other : int_of(*bound);
}

// The names of arguments in the graph by what Python calls them: L['d']['k'] is a path.
class ArgumentPaths {
 public:
  explicit ArgumentPaths(const Json& program) {
    const Json& module = field(program, "graph_module");
    for (const Json& spec : list_of(field(field(module, "signature"), "input_specs"))) {
      const auto [kind, content] = only_field(spec);
      if (kind == "constant_input") names_.emplace_back();
      if (kind != "user_input") continue;
      const auto [argument, value] = only_field(field(*content, "arg"));
      names_.push_back(argument == "as_tensor" ? text_of(field(*value, "name")) : "");
    }
    for (const Json& call : list_of(field(module, "module_call_graph")))
      if (text_of(field(call, "fqn")).empty()) read_call(field(call, "signature"));
  }

  // Empty where there is no such argument. Of f(*a), torch has names "a_0", "a_1".
  std::string name_of(const AxisOf& axis) const {
    std::string path = axis.argument;
    size_t first = 0;
    if (!called_.contains(path) && !axis.keys.empty()) path += "_" + axis.keys[first++];
    for (size_t i = first; i < axis.keys.size(); ++i) path += kStep + axis.keys[i];
    const auto found = paths_.find(path);
    return found == paths_.end() ? "" : found->second;
  }

 private:
  static constexpr char kStep = '\x1f';  // between the steps of a path: no key has it

  void read_call(const Json& signature) {
    const Json* called = find_field(signature, "forward_arg_names");
    if (called == nullptr) return;
    const Json spec = parse_json(text_of(field(signature, "in_spec")), "a structure");
    if (!spec.is_array() || spec.size() != 2) return;
    size_t next = 0;
    for (const Json& part : list_of(field(spec[1], "children_spec")))  // by place, by name
      for (const Json& argument : list_of(field(part, "children_spec"))) {
        if (next >= list_of(*called).size()) return;
        const std::string& name = text_of((*called)[next++]);
        called_.insert(name);
        read(argument, name, 0);
      }
  }
  void read(const Json& spec, const std::string& path, int depth) {
    constexpr int kDeepestPath = 64;
    if (depth > kDeepestPath) throw UserError("a structure nested more than 64 levels deep");
    const Json& children = list_of(field(spec, "children_spec"));
    if (find_field(spec, "type") == nullptr && next_ < names_.size())
      paths_[path] = names_[next_++];
    const Json* context = find_field(spec, "context");
    const Json keys = context == nullptr || !context->is_string()
                          ? Json()
                          : Json::parse(text_of(*context), nullptr, /*allow_exceptions=*/false);
    for (size_t i = 0; i < children.size(); ++i) {
      const bool named = keys.is_array() && keys.size() == children.size() && keys[i].is_string();
      read(children[i], path + kStep + (named ? text_of(keys[i]) : std::to_string(i)), depth + 1);
    }
  }

  std::vector<std::string> names_;  // of the leaves; of constants empty
  size_t next_ = 0;
  std::set<std::string> called_;
  std::map<std::string, std::string> paths_;
};

// Values between the least and the greatest, these among them.
std::vector<int64_t> spread(int64_t low, int64_t high, int64_t step, size_t count) {
  std::set<int64_t> values;
  const int64_t steps = (high - low) / step;
  for (size_t i = 0; i < count; ++i) {
    // Closer together where they are small, as the sizes are that programs are shown.
    const int64_t part = static_cast<int64_t>(i * i * i),
                  all = static_cast<int64_t>((count - 1) * (count - 1) * (count - 1));
    values.insert(low + step * (steps * part / all));
  }
  for (int64_t i = 0; i <= steps && values.size() < count; ++i) values.insert(low + step * i);
  return {values.begin(), values.end()};
}

}  // namespace

FreeSymbols::FreeSymbols(const Json& program, const SymbolValues& example, const ReadAt& read_at)
    : example_(example), read_at_(read_at), metas_(field(graph_in(program), "tensor_values")) {
  std::set<std::string> symbols;
  for (const std::string& name : tensor_arguments(program))
    for (const Json& size : list_of(field(field(metas_, name.c_str()), "sizes")))
      for (const std::string& symbol : symbols_of(expression_of(size))) symbols.insert(symbol);
  if (symbols.empty()) return;
  if (symbols.size() > kMostSymbols)
    throw UserError("expected at most " + std::to_string(kMostSymbols) +
                    " dynamic sizes, received " + std::to_string(symbols.size()));
  read_conditions(program);
  for (const std::string& symbol : symbols)
    find_range(symbol, std::max(kLeast, bound_of(program, symbol, "min_val", kLeast)),
               std::min(kGreatest, bound_of(program, symbol, "max_val", kGreatest)));
  expect_all_hold();
}

void FreeSymbols::read_conditions(const Json& program) {
  const Json* texts = find_field(program, "guards_code");
  if (texts == nullptr) return;
  const ArgumentPaths paths(program);
  for (const Json& text : list_of(*texts)) {
    Noted noted{text_of(text), {}, {}};
    std::set<std::string> symbols;
    for (const AxisOf& axis : axes_in(noted.text)) {
      const Json* meta = find_field(metas_, paths.name_of(axis).c_str());
      if (meta == nullptr)
        throw UserError("a condition on sizes of what is no argument: " + noted.text);
      const Json& sizes = list_of(field(*meta, "sizes"));
      if (axis.axis >= static_cast<int64_t>(sizes.size()))
        throw UserError("a condition on an axis that is not there: " + noted.text);
      const Json& size = sizes[static_cast<size_t>(axis.axis)];
      const std::string expression = expression_of(size);
      noted.sizes[axis] =
          expression.empty() ? "Integer(" + std::to_string(Sizes().value(size)) + ")" : expression;
      for (const std::string& symbol : symbols_of(expression)) symbols.insert(symbol);
    }
    noted.symbols.assign(symbols.begin(), symbols.end());
    conditions_.push_back(std::move(noted));
  }
}

bool FreeSymbols::noted_holds(const Noted& one, const SymbolValues& values) const {
  return holds(one.text, [&](const AxisOf& axis) { return evaluate(one.sizes.at(axis), values); });
}

// Of this symbol alone.
bool FreeSymbols::all_hold(const SymbolValues& values, const std::string& symbol) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Noted& one) {
    return one.symbols != std::vector<std::string>{symbol} || noted_holds(one, values);
  });
}

// From the least value on, all in steps: what a family can say.
void FreeSymbols::find_range(const std::string& symbol, int64_t low, int64_t high) {
  SymbolValues values = example_;
  std::vector<int64_t> allowed;
  for (int64_t value = low; value <= high; ++value) {
    values[symbol] = value;
    if (all_hold(values, symbol)) allowed.push_back(value);
  }
  const auto own = example_.find(symbol);
  if (own == example_.end()) throw UserError("the size '" + symbol + "' has no example");
  if (allowed.size() < kLeastExamples)
    throw UserError("the size '" + symbol +
                    "' may have fewer than three values above 1; export the "
                    "program with a fixed size there");
  const int64_t step = allowed[1] - allowed[0];
  for (size_t i = 1; i < allowed.size(); ++i)
    if (allowed[i] - allowed[i - 1] != step)
      throw UserError("the size '" + symbol + "' may not be " +
                      std::to_string(allowed[i - 1] + step) +
                      " between others that it may be; export the program with a narrower range");
  Range range{allowed.front(), allowed.back(), step};
  if (own->second < range.low || own->second > range.high)
    throw UserError("the size '" + symbol + "' is " + std::to_string(own->second) +
                    " in the example, and may be from " + std::to_string(range.low) + " to " +
                    std::to_string(range.high) + "; export the program with another example");
  range = readable(symbol, range);
  allowed_[symbol] = range;
  std::vector<int64_t> shown = spread(range.low, range.high, range.step, kExamples);
  std::erase(shown, own->second);
  shown.insert(shown.begin(), own->second);
  if (shown.size() > kExamples) shown.erase(shown.begin() + kExamples / 2);
  shown_[symbol] = shown;
}

// Assertions of the program say more than the conditions beside it; they are seen where it is read.
FreeSymbols::Range FreeSymbols::readable(const std::string& symbol, Range range) const {
  const int64_t own = example_.at(symbol);
  std::string why;
  const auto is_readable = [&](int64_t value) {
    SymbolValues values = example_;
    values[symbol] = value;
    try {
      read_at_(values);
      return true;
    } catch (const UserError& error) {
      if (why.empty()) why = error.what();
      return false;
    }
  };
  constexpr int64_t kSteps = 32;
  int64_t step = 0;
  for (int64_t tried = range.step; step == 0 && tried <= range.step * kSteps; tried += range.step)
    if ((own + tried <= range.high && is_readable(own + tried)) ||
        (own - tried >= range.low && is_readable(own - tried)))
      step = tried;
  if (step == 0)
    throw UserError("the size '" + symbol + "' is " + std::to_string(own) +
                    " in the example, and beside it the program does not hold: " + why);
  // The farthest that are read, in halves of the way.
  const auto reach = [&](int64_t steps, int64_t direction) {
    while (steps > 0 && !is_readable(own + direction * steps)) steps = steps / step / 2 * step;
    return own + direction * steps;
  };
  return {reach((own - range.low) / step * step, -1), reach((range.high - own) / step * step, 1),
          step};
}

// Conditions on several sizes, at a grid of them.
void FreeSymbols::expect_all_hold() const {
  for (const Noted& one : conditions_) {
    if (one.symbols.size() == 1) continue;
    std::vector<SymbolValues> grid = {example_};
    for (const std::string& symbol : one.symbols) {
      const Range& range = allowed_.at(symbol);
      const size_t count = one.symbols.size() == 2 ? 100 : 16;
      std::vector<SymbolValues> next;
      for (const SymbolValues& values : grid)
        for (const int64_t value : spread(range.low, range.high, range.step, count)) {
          next.push_back(values);
          next.back()[symbol] = value;
        }
      grid = std::move(next);
    }
    for (const SymbolValues& values : grid)
      if (!noted_holds(one, values))
        throw UserError("its sizes have to go together: " + one.text +
                        "; export the program with fixed sizes there");
  }
}

std::vector<SymbolValues> FreeSymbols::others() const {
  std::vector<SymbolValues> all;
  for (const double part : {0.37, 0.71, 0.93}) {
    SymbolValues values = example_;
    double at = part;
    for (const auto& [symbol, range] : allowed_) {
      const int64_t steps = (range.high - range.low) / range.step;
      values[symbol] =
          range.low + range.step * static_cast<int64_t>(at * static_cast<double>(steps));
      at = at * 0.6 + 0.1;
    }
    all.push_back(values);
  }
  return all;
}

SymbolValues FreeSymbols::with_size(const SymbolValues& values, const std::string& input,
                                    size_t axis, int64_t size) const {
  const Json& meta = list_of(field(field(metas_, input.c_str()), "sizes")).at(axis);
  const std::string expression = expression_of(meta);
  const auto symbols = symbols_of(expression);
  if (symbols.size() != 1)
    throw UserError("the size " + pt2_read::shown(meta) + " of several symbols");
  const std::string& symbol = *symbols.begin();
  const Range& range = allowed_.at(symbol);
  SymbolValues changed = values;
  for (int64_t value = range.low; value <= range.high; value += range.step) {
    changed[symbol] = value;
    if (evaluate(expression, changed) == size) return changed;
  }
  throw UserError("the sizes of its values are not told by those of '" + input +
                  "' that the program may have");
}

// ---- the family ---------------------------------------------------------------------------------

namespace {

// Reads examples until they tell all formulas.
class Unifier {
 public:
  Unifier(const FreeSymbols& symbols, const ReadAt& read_at, const SymbolValues& example,
          const Graph& graph)
      : symbols_(symbols), read_at_(read_at), example_(example), graphs_({graph}) {
    for (size_t i = 1; i < kExamples; ++i) {
      SymbolValues values = example_;
      size_t number = 0;
      for (const auto& [symbol, shown] : symbols_.shown())
        values[symbol] = shown[i * ++number % kExamples % shown.size()];
      graphs_.push_back(read_at_(values));
    }
  }

  Family run() {
    for (size_t wanted = 0;; ++wanted) {
      try {
        return unify(graphs_);
      } catch (const ExampleWanted& error) {
        if (wanted == kMostWanted) throw;
        graphs_.push_back(read_at_(at(error.sizes)));
      }
    }
  }

 private:
  // The symbols at these sizes of the inputs.
  SymbolValues at(const SizeValues& sizes) const {
    SymbolValues values = example_;
    for (const FreeSize& size : free_sizes(graphs_)) {
      const auto found = sizes.find(size.name);
      if (found == sizes.end()) continue;
      const InputAxis& axis = size.axes.at(0);
      const std::string& input = input_name(*graphs_[0].inputs().at(axis.input).node);
      values = symbols_.with_size(values, input, axis.axis, found->second);
    }
    return values;
  }

  const FreeSymbols& symbols_;
  const ReadAt& read_at_;
  SymbolValues example_;
  std::vector<Graph> graphs_;
};

}  // namespace

SavedCapture family_at(const SavedCapture& example, const FreeSymbols& symbols,
                       const SymbolValues& values, const ReadAt& read_at) {
  const Family family = Unifier(symbols, read_at, values, example.graph).run();
  for (const SymbolValues& other : symbols.others()) {
    const Graph read = without_incidentals(read_at(other));
    std::vector<Type> types;
    for (const LazyTensor& input : read.inputs()) types.push_back(input.type());
    if (!(bind_types(family, types).graph == read))
      throw UserError("its sizes follow no formulas that composit has");
  }
  Cases cases;
  cases.cases.push_back(family);
  cases.case_of_example = {0};
  return with_family({example}, cases);
}

}  // namespace composit::pt2_read
