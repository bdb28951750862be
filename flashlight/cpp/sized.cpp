#include "flashlight/cpp/sized.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "composit/ir/error.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/recompute.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/statement.h"
#include "flashlight/loops/unify.h"
#include "flashlight/loops/verify.h"
#include "flashlight/text/literal.h"

namespace flashlight::cpp {
namespace {

using composit::Graph;
using composit::UserError;

// Sizes that the text is written at are no smaller: at few rows or terms, loops have other forms.
constexpr int64_t kLeastProbe = 61;
// A constant may be a multiple of a prime by chance.
constexpr int kMostAttempts = 4;

int64_t prime_from(int64_t number) {
  const auto is_prime = [](int64_t n) {
    for (int64_t i = 2; i * i <= n; ++i)
      if (n % i == 0) return false;
    return n > 1;
  };
  while (!is_prime(number)) ++number;
  return number;
}

// The program with sizes that may be any numbers.
Program without_ranges(Program open) {
  for (NamedSize& size : open.sizes) size.least = 1, size.most = INT32_MAX;
  return open;
}

// A prime, or a multiple of one that all fractions of sizes need, for each size that a call gives;
// other ones for each `attempt`.
SizeNumbers probe_of(const Program& open, int attempt) {
  int64_t multiple = 1;
  for (const NamedSize& size : open.sizes) multiple = std::lcm(multiple, size.divisor);
  SizeNumbers numbers;
  int64_t next = 0;
  for (const NamedSize& size : open.sizes) {
    if (!size.of.empty()) continue;
    const int64_t least = std::max(kLeastProbe, size.most / multiple + 1);
    next = prime_from(std::max(next + 1, least + 41 * attempt));
    numbers[size.name] = multiple * next;
  }
  return numbers;
}

// The given sizes that a size follows from.
std::set<std::string> given_names(const Program& open, const NamedSize& size) {
  if (size.of.empty()) return {size.name};
  std::set<std::string> names;
  for (const SizeId from : size.of) names.merge(given_names(open, open.sizes[from]));
  return names;
}

text::SizeNames names_at(const Program& open, const SizeNumbers& given) {
  const Table<SizeId, int64_t> numbers = numbers_of(open, given);
  text::SizeNames names;
  for (const SizeId i : open.sizes.ids()) {
    const NamedSize& size = open.sizes[i];
    const bool is_product = !size.of.empty() && size.divisor == 1 && size.added == 0;
    if (!is_product && numbers[i] > 1)
      names.add({print(open, size), numbers[i], given_names(open, size)});
  }
  return names;
}

void expect_small(const Program& bound) {
  for (const Routine& function : bound.functions)
    for (const Value& value : function.values)
      if (value.type.numel() > INT32_MAX)
        throw UserError("[cpp] expected sizes for which all values have less than 2^31 elements, "
                        "received others for '" +
                        value.name + "'");
}

Source source_at(const Program& program, const SplitOptions& split, int attempt) {
  const SizeNumbers given = probe_of(program, attempt);
  const Program open = without_ranges(program);
  Program bound = bind_sizes(open, given);
  expect_small(bound);
  bound = checked("recompute", recompute(std::move(bound)));
  bound = checked("split_long_functions", split_long_functions(std::move(bound), split));
  return emit(std::move(bound), names_at(open, given));
}

// Numbers that differ between texts, for a message.
std::string difference(const std::string& a, const std::string& b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line = [](const std::string& text, std::string::const_iterator place) {
    const auto at = static_cast<size_t>(place - text.begin());
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const size_t first = text.find_first_not_of(' ', begin);
    return text.substr(first, text.find('\n', first) - first);
  };
  return "'" + line(a, x) + "' and '" + line(b, y) + "'";
}

Source sized_source(const Program& program, const SplitOptions& split) {
  std::vector<Source> sources;
  std::string fault;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Source now = source_at(program, split, attempt);
    for (const Source& other : sources)
      if (other.text == now.text) return now;
    if (!sources.empty()) fault = difference(sources.back().text, now.text);
    sources.push_back(std::move(now));
  }
  throw UserError("[cpp] expected one text for all sizes, received different ones: " + fault);
}

// The program of as many graphs as have one; small sizes are left out first.
Program unified(const std::vector<Program>& programs) {
  constexpr size_t kLeastPrograms = 3;
  for (size_t left_out = 0;; ++left_out) {
    try {
      return unify({programs.rbegin(), programs.rend() - static_cast<std::ptrdiff_t>(left_out)});
    } catch (const UserError&) {
      if (programs.size() - left_out <= kLeastPrograms) throw;
    }
  }
}

// The program's text without its numbers.
std::string form_of(const Program& program) {
  std::string text = print(program);
  std::string form;
  for (const char c : text) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit)
      form += c;
    else if (form.empty() || form.back() != '#')
      form += '#';
  }
  return form;
}

// Those of one form, as many as there are; the larger ones of two such groups.
std::vector<composit::SizedGraph> of_one_form(const std::vector<composit::SizedGraph>& shown,
                                              const LowerOptions& lowering) {
  std::map<std::string, std::vector<composit::SizedGraph>> groups;
  const std::vector<composit::SizedGraph>* most = nullptr;
  for (const composit::SizedGraph& one : shown) {
    auto& group = groups[form_of(lower(one.graph, lowering))];
    group.push_back(one);
    if (most == nullptr || group.size() >= most->size()) most = &group;
  }
  return *most;
}

std::vector<composit::Type> input_types(const Graph& graph) {
  std::vector<composit::Type> types;
  for (const composit::LazyTensor& input : graph.inputs()) types.push_back(input.type());
  return types;
}

// Sizes by the program's names for them, where it has one with the same numbers at all graphs.
Program with_names(Program open, const std::vector<composit::SizedGraph>& shown) {
  std::map<std::string, std::vector<int64_t>> by_user, by_input;
  for (const composit::SizedGraph& one : shown) {
    for (const auto& [name, number] : one.sizes) by_user[name].push_back(number);
    for (const auto& [name, number] : sizes_given(open, input_types(one.graph)))
      by_input[name].push_back(number);
  }
  const auto word = [](std::string name) {
    for (char& c : name)
      if (!is_size_char(c)) c = '_';
    return text::identifier(name);
  };
  for (NamedSize& size : open.sizes) {
    if (!size.of.empty()) continue;
    const auto found = std::find_if(by_user.begin(), by_user.end(), [&](const auto& one) {
      return one.second == by_input[size.name];
    });
    const bool is_free =
        found != by_user.end() &&
        std::none_of(open.sizes.begin(), open.sizes.end(),
                     [&](const NamedSize& other) { return other.name == word(found->first); });
    size.name = is_free ? word(found->first) : word(size.name);
  }
  return open;
}

// What is said of values kept in memory speaks of numbers of one size.
Program without_reasons(Program program) {
  for (Routine& function : program.functions) function.kept.clear();
  return program;
}

}  // namespace

SizedProgram::SizedProgram(const std::vector<composit::SizedGraph>& shown, LowerOptions lowering,
                           const SplitOptions& split)
    : lowering_(std::move(lowering)) {
  lowering_.keep_slices = true;
  if (shown.size() < 2)
    throw UserError("[cpp] expected graphs at two sizes or more, received " +
                    std::to_string(shown.size()));
  const std::vector<composit::SizedGraph> alike = of_one_form(shown, lowering_);
  const Program model = fused_like_model(alike.back().graph);
  for (const Routine& function : model.functions) {
    std::vector<bool> written(function.values.size());
    for (const Step& step : function.steps)
      for (const ValueId value : writes(step)) written[value] = true;
    in_memory_.push_back(std::move(written));
  }
  std::vector<Program> programs;
  for (const auto& [graph, sizes] : alike) programs.push_back(fused_like_model(graph));
  open_ = with_names(unified(programs), alike);
  source_ = sized_source(open_, split);
}

// The loops of a graph, with the values in memory that the largest graph has there.
Program SizedProgram::fused_like_model(const Graph& graph) const {
  FuseOptions options;
  if (!in_memory_.empty())
    options.choice = [&](FunctionId function, ValueId value) -> std::optional<bool> {
      if (function >= in_memory_.size() || value >= in_memory_[function].size())
        return std::nullopt;
      return !in_memory_[function][value];
    };
  Program program = checked("lower", lower(graph, lowering_));
  program = checked("fuse", fuse(std::move(program), options));
  return without_reasons(checked("drop_zero_terms", drop_zero_terms(std::move(program))));
}

std::optional<std::vector<int64_t>> SizedProgram::sizes_of(const Graph& graph) const {
  try {
    const SizeNumbers given = sizes_given(open_, input_types(graph));
    if (print(fused_like_model(graph)) != print(bind_sizes(open_, given))) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const std::string& name : source_.sizes) numbers.push_back(given.at(name));
    return numbers;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace flashlight::cpp
