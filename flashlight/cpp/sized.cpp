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

// All positive integers of the program's text, but those in names and in what is quoted.
std::set<int64_t> constants_of(const Program& open) {
  constexpr size_t kMostDigits = 9;
  std::set<int64_t> constants;
  const std::string text = print(open);
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '.';
  };
  bool is_quoted = false;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_digit);
    if (*at == '"') is_quoted = !is_quoted;
    const bool is_name = at != text.begin() && is_of_name(*(at - 1));
    const auto digits = static_cast<size_t>(end - at);
    if (digits > 0 && digits <= kMostDigits && !is_quoted && !is_name)
      constants.insert(std::stoll(std::string(at, end)));
    at = digits == 0 ? at + 1 : end;
  }
  constants.erase(0);
  return constants;
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

// Numbers for the sizes that a call gives: primes that no other text was written at, or multiples
// of them that all fractions of sizes need, by which no constant of the program has a name.
class Probes {
 public:
  explicit Probes(const Program& program)
      : program_(program), open_(without_ranges(program)), constants_(constants_of(program)) {
    for (const NamedSize& size : program.sizes) multiple_ = std::lcm(multiple_, size.divisor);
  }

  SizeNumbers next() {
    for (int tries = 0; tries < kMostTries; ++tries) {
      std::vector<int64_t> primes;
      const SizeNumbers numbers = from(kLeastProbe + 11 * tries, primes);
      const text::SizeNames names = names_at(open_, numbers);
      const bool meets = std::any_of(constants_.begin(), constants_.end(),
                                     [&](int64_t constant) { return names.has(constant); });
      if (meets) continue;
      used_.insert(primes.begin(), primes.end());
      return numbers;
    }
    throw UserError("[cpp] expected fewer constants, or fewer sizes: no sizes tell them apart");
  }
  const Program& open() const { return open_; }

 private:
  static constexpr int kMostTries = 300;

  SizeNumbers from(int64_t least, std::vector<int64_t>& primes) const {
    SizeNumbers numbers;
    for (const NamedSize& size : program_.sizes) {
      if (!size.of.empty()) continue;
      int64_t prime = prime_from(std::max(least, size.most / multiple_ + 1));
      while (used_.contains(prime) ||
             std::find(primes.begin(), primes.end(), prime) != primes.end())
        prime = prime_from(prime + 1);
      primes.push_back(prime);
      numbers[size.name] = multiple_ * prime;
    }
    return numbers;
  }

  const Program& program_;
  const Program open_;
  const std::set<int64_t> constants_;
  int64_t multiple_ = 1;
  std::set<int64_t> used_;
};

void expect_small(const Program& bound) {
  for (const Routine& function : bound.functions)
    for (const Value& value : function.values)
      if (value.type.numel() > INT32_MAX)
        throw UserError(
            "[cpp] expected sizes for which all values have less than 2^31 elements, "
            "received others for '" +
            value.name + "'");
}

Source source_at(Probes& probes, const SplitOptions& split) {
  const SizeNumbers given = probes.next();
  Program bound = checked("recompute", recompute(bind_sizes(probes.open(), given)));
  bound = checked("split_long_functions", split_long_functions(std::move(bound), split));
  return emit(std::move(bound), names_at(probes.open(), given));
}

// Numbers that differ between texts, for a message.
std::string difference(const std::string& a, const std::string& b) {
  constexpr size_t kMostShown = 120;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line = [](const std::string& text, std::string::const_iterator place) {
    const auto at = static_cast<size_t>(place - text.begin());
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const size_t first = text.find_first_not_of(' ', begin);
    const std::string all = text.substr(first, text.find('\n', first) - first);
    return all.size() > kMostShown ? all.substr(0, kMostShown) + "…" : all;
  };
  return "'" + line(a, x) + "' and '" + line(b, y) + "'";
}

Source sized_source(const Program& program, const SplitOptions& split) {
  Probes probes(program);
  std::vector<Source> sources;
  std::string fault;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Source now = source_at(probes, split);
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
      return unify({programs.rbegin(), programs.rend() - static_cast<std::ptrdiff_t>(left_out)},
                   {.reads_numbers = true});
    } catch (const UserError&) {
      if (programs.size() - left_out <= kLeastPrograms) throw;
    }
  }
}

// The program's text without names, sources and reasons: those of equal functions depend on the
// sizes of others.
std::string code_of(Program program) {
  for (Routine& function : program.functions) {
    function.name.clear();
    function.kept.clear();
    for (Value& value : function.values) value.name.clear();
    for (Step& step : function.steps) {
      std::visit([](auto& one) { one.origin = {}; }, step);
      if (auto* nest = std::get_if<Nest>(&step)) nest->fused.clear();
    }
  }
  return print(program);
}

// The same without its numbers.
std::string form_of(const Program& program) {
  const std::string text = code_of(program);
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
  if (most->size() < 2)
    throw UserError(
        "[cpp] expected loops of one form at two sizes or more, received other ones at " +
        std::to_string(shown.size()) +
        " sizes: " + difference(groups.begin()->first, std::next(groups.begin())->first));
  return *most;
}

// Sizes by the program's names for them, where it has one with the same numbers at all graphs.
Program with_names(Program open, const std::vector<composit::SizedGraph>& shown,
                   const std::vector<Program>& programs) {
  std::map<std::string, std::vector<int64_t>> by_user, by_input;
  for (size_t i = 0; i < shown.size(); ++i) {
    for (const auto& [name, number] : shown[i].sizes) by_user[name].push_back(number);
    for (const auto& [name, number] : numbers_in(open, programs[i]))
      by_input[name].push_back(number);
  }
  for (NamedSize& size : open.sizes) {
    if (!size.of.empty()) continue;
    const auto found = std::find_if(by_user.begin(), by_user.end(), [&](const auto& one) {
      return one.second == by_input[size.name];
    });
    const bool is_free =
        found != by_user.end() &&
        std::none_of(open.sizes.begin(), open.sizes.end(),
                     [&](const NamedSize& other) { return other.name == size_word(found->first); });
    size.name = is_free ? size_word(found->first) : size.name;
  }
  return open;
}

}  // namespace

std::string size_word(std::string name) {
  for (char& c : name)
    if (!is_size_char(c)) c = '_';
  return text::identifier(name);
}

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
  open_ = with_names(unified(programs), alike, programs);
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
  return checked("drop_zero_terms", drop_zero_terms(std::move(program)));
}

std::optional<std::vector<int64_t>> SizedProgram::sizes_of(const Graph& graph) const {
  try {
    const Program program = fused_like_model(graph);
    const SizeNumbers given = numbers_in(open_, program);
    if (code_of(program) != code_of(bind_sizes(without_ranges(open_), given))) return std::nullopt;
    expect_small(program);
    std::vector<int64_t> numbers;
    for (const std::string& name : source_.sizes) numbers.push_back(given.at(name));
    return numbers;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace flashlight::cpp
