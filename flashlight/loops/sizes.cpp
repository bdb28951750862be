#include "flashlight/loops/sizes.h"

#include <algorithm>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/op/loops_text.h"

namespace flashlight::loops {
namespace {

using composit::UserError;

std::string names_given(const Program& program) {
  std::string text;
  for (const NamedSize& size : program.sizes)
    if (size.of.empty()) text += (text.empty() ? "" : ", ") + size.name;
  return text;
}

int64_t given_number(const Program& program, const NamedSize& size, const SizeNumbers& given) {
  const auto found = given.find(size.name);
  if (found == given.end())
    throw UserError("[bind] expected a number for each of " + names_given(program) +
                    ", received none for '" + size.name + "'");
  if (found->second < size.least || found->second > size.most)
    throw UserError("[bind] expected '" + size.name + "' from " + std::to_string(size.least) +
                    " to " + std::to_string(size.most) + ", as was shown, received " +
                    std::to_string(found->second));
  return found->second;
}

class Binder {
 public:
  Binder(Program program, const SizeNumbers& given)
      : program_(std::move(program)), numbers_(numbers_of(program_, given)) {}

  Program run() {
    for (Routine& function : program_.functions) {
      for (Value& value : function.values) bind(value);
      for (Step& step : function.steps) {
        if (auto* nest = std::get_if<Nest>(&step)) bind(*nest);
        if (auto* control = std::get_if<Control>(&step))
          if (const auto size = std::exchange(control->named_length, {}))
            control->length = extent(*size);
      }
    }
    program_.sizes.clear();
    return std::move(program_);
  }

 private:
  // The number of a size that is an extent, which must not be negative.
  int64_t extent(SizeId size) const {
    if (numbers_[size] < 0)
      throw UserError("[bind] expected an extent for '" + program_.sizes[size].name + "' (" +
                      print(program_, program_.sizes[size]) + "), received " +
                      std::to_string(numbers_[size]));
    return numbers_[size];
  }

  void bind(Value& value) const {
    for (size_t i = 0; i < value.named.size(); ++i)
      if (value.named[i]) value.type.sizes[i] = extent(*value.named[i]);
    for (size_t i = 0; i < value.model_named.size(); ++i)
      if (value.model_named[i]) value.model_sizes[i] = extent(*value.model_named[i]);
    if (!value.named.empty()) value.type.strides = composit::contiguous_strides(value.type.sizes);
    value.named = value.model_named = {};
  }

  void bind(Nest& nest) const {
    for (size_t i = 0; i < nest.named.size(); ++i)
      if (nest.named[i]) nest.statement.axes[i].extent = extent(*nest.named[i]);
    nest.named = {};
    nest.statement = composit::with_numbers(nest.statement, numbers_);
  }

  Program program_;
  const Table<SizeId, int64_t> numbers_;
};

}  // namespace

Table<SizeId, int64_t> numbers_of(const Program& program, const SizeNumbers& given) {
  Table<SizeId, int64_t> numbers;
  size_t known = 0;
  for (const NamedSize& size : program.sizes) {
    if (size.of.empty()) {
      numbers.push_back(given_number(program, size, given));
      ++known;
      continue;
    }
    int64_t product = size.factor;
    bool fits = true;
    for (const SizeId from : size.of)
      fits = !__builtin_mul_overflow(product, numbers.at(from), &product) && fits;
    if (!fits || product % size.divisor != 0)
      throw UserError("[bind] expected an integer for '" + size.name + "', which is " +
                      print(program, size) + ", received " + std::to_string(product) + " / " +
                      std::to_string(size.divisor));
    numbers.push_back(product / size.divisor + size.added);
  }
  if (known != given.size())
    for (const auto& [name, number] : given)
      if (std::none_of(program.sizes.begin(), program.sizes.end(),
                       [&](const NamedSize& size) { return size.of.empty() && size.name == name; }))
        throw UserError("[bind] expected numbers for " + names_given(program) +
                        ", received one for '" + name + "'");
  return numbers;
}

SizeNumbers sizes_given(const Program& program, const std::vector<Array>& inputs) {
  std::vector<Type> types;
  for (const Array& input : inputs) types.push_back(input.type());
  return sizes_given(program, types);
}

SizeNumbers sizes_given(const Program& program, const std::vector<Type>& inputs) {
  SizeNumbers given;
  if (program.sizes.empty()) return given;
  const Routine& function = program.functions.back();
  size_t next = 0;
  for (const ValueId input : function.inputs) {
    const Value& value = function.values[input];
    if (value.constant.defined()) continue;
    if (next == inputs.size())
      throw UserError("[bind] expected an input for '" + value.name + "', received none");
    const composit::Dims& sizes = inputs[next++].sizes;
    if (value.named.empty()) continue;
    if (sizes.size() != value.named.size())
      throw UserError("[bind] expected " + std::to_string(value.named.size()) + " axes of '" +
                      value.name + "', received " + std::to_string(sizes.size()));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto size = value.named[i];
      if (!size || !program.sizes[*size].of.empty()) continue;
      const std::string& name = program.sizes[*size].name;
      const auto [known, added] = given.emplace(name, sizes[i]);
      if (known->second != sizes[i])
        throw UserError("[bind] expected one number for '" + name + "', received " +
                        std::to_string(known->second) + ", and " + std::to_string(sizes[i]) +
                        " as axis " + std::to_string(i) + " of '" + value.name + "'");
    }
  }
  return given;
}

SizeNumbers numbers_in(const Program& open, const Program& program) {
  SizeNumbers numbers;
  const auto take = [&](const SizeIds& named, const auto& number) {
    for (size_t i = 0; i < named.size(); ++i)
      if (named[i] && open.sizes[*named[i]].of.empty())
        numbers.emplace(open.sizes[*named[i]].name, number(i));
  };
  const auto same = [](size_t a, size_t b) {
    if (a != b) throw UserError("[bind] expected a program of the same form");
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
      throw UserError("[bind] expected '" + size.name +
                      "' to be a size of a value or the extent of a loop");
  return numbers;
}

Program bind_sizes(Program program, const SizeNumbers& given) {
  return Binder(std::move(program), given).run();
}

void expect_bound(std::string_view who, const Program& program) {
  if (program.sizes.empty()) return;
  throw UserError("[" + std::string(who) + "] expected a program of numbers, received one with '" +
                  program.sizes.front().name + "' open: bind it first");
}

std::string print(const Program& program, const NamedSize& size) {
  if (size.of.empty()) return size.name;
  std::string text = size.factor == 1 ? "" : std::to_string(size.factor);
  for (const SizeId from : size.of) text += (text.empty() ? "" : " * ") + program.sizes[from].name;
  if (size.divisor != 1) text += " / " + std::to_string(size.divisor);
  if (size.added > 0) text += " + " + std::to_string(size.added);
  if (size.added < 0) text += " - " + std::to_string(-size.added);
  return text;
}

bool is_size_char(char c) { return composit::is_word_start(c) || (c >= '0' && c <= '9'); }

bool is_size_name(std::string_view name) {
  return !name.empty() && composit::is_word_start(name[0]) && !composit::is_loop_word(name) &&
         std::all_of(name.begin(), name.end(), is_size_char);
}

std::vector<std::string> size_names(const Program& program) {
  std::vector<std::string> names;
  for (const NamedSize& size : program.sizes) names.push_back(size.name);
  return names;
}

std::vector<int64_t> size_examples(const Program& program) {
  std::vector<int64_t> numbers;
  for (const NamedSize& size : program.sizes) numbers.push_back(size.example);
  return numbers;
}

}  // namespace flashlight::loops
