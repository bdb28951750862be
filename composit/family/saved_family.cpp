#include "composit/family/saved_family.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "composit/family/bind.h"
#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "composit/ir/literal.h"

namespace composit {
namespace {

// The properties of graph.txt that hold the sizes of a family, and the conditions of cases.
constexpr const char *kSizes = "sizes", *kForks = "forks";
// In place of a condition: the bool that the program reads at that place decides.
constexpr const char* kAnswer = "answer";

// "case 1"
std::string words_for(const Way& way) {
  return (way.is_case ? "case " : "fork ") + std::to_string(way.index + 1);
}

// A line per fork: the case whose values the condition reads, the condition, where its ways lead,
// and the place.
std::string text_of_forks(const Cases& cases) {
  std::string text;
  for (const Fork& fork : cases.forks) {
    text += "in case " + std::to_string(fork.reader + 1) + ": ";
    text +=
        fork.by_value ? kAnswer : print(fork.condition, Names(cases.cases[fork.reader].example));
    text += " : ";
    text += words_for(fork.holds) + ", " + words_for(fork.fails) + " at ";
    append_quoted(text, fork.place);
    text += "\n";
  }
  return text;
}

size_t read_index(Lexer& lexer, size_t count) {
  const Token token = lexer.take(TokenKind::number, "a number");
  const auto number = parse_int(token.text);
  if (!number || *number < 1 || static_cast<size_t>(*number) > count)
    lexer.fail(token.offset, "expected a number from 1 to " + std::to_string(count));
  return static_cast<size_t>(*number) - 1;
}

Way read_way(Lexer& lexer, size_t cases, size_t forks) {
  if (lexer.accept("case")) return {true, read_index(lexer, cases)};
  lexer.expect("fork");
  return {false, read_index(lexer, forks)};
}

void read_forks(const std::string& text, Cases& cases) {
  const auto count = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  Lexer lexer(text, "forks", 1);
  while (lexer.peek().kind != TokenKind::end) {
    Fork fork;
    lexer.expect("in");
    lexer.expect("case");
    fork.reader = read_index(lexer, cases.cases.size());
    lexer.expect(":");
    const auto values = values_by_name(cases.cases[fork.reader].example);
    fork.by_value = lexer.accept(kAnswer);
    if (!fork.by_value)
      fork.condition = read_condition(lexer, [&](std::string_view name) {
        const auto found = values.find(std::string(name));
        return found == values.end() ? LazyTensor() : found->second;
      });
    lexer.expect(":");
    fork.holds = read_way(lexer, cases.cases.size(), count);
    lexer.expect(",");
    fork.fails = read_way(lexer, cases.cases.size(), count);
    lexer.expect("at");
    fork.place = parse_quoted(lexer.take(TokenKind::string, "a place in quotes").text).value_or("");
    cases.forks.push_back(std::move(fork));
  }
}

SavedCapture with_case(SavedCapture example, const Family& family) {
  example.graph = family.example;
  example.formulas = family.formulas;
  example.properties[kSizes] = sizes_text(family);
  example.properties[kOfFamily] = "true";
  return example;
}

Family case_of(const SavedCapture& saved) {
  const auto sizes = saved.properties.find(kSizes);
  if (sizes == saved.properties.end())
    throw UserError(
        "[bind] expected a family, received the capture of one run; `flashlight unify` makes a "
        "family of several");
  return family_of(saved.graph, saved.formulas, sizes->second);
}

// What two examples of one program have in common, and words for it. Structures are text that
// flashlight writes: numbers among the arguments are in it.
constexpr std::pair<const char*, const char*> kCommon[] = {
    {"arguments", "other numbers or another structure of arguments"},
    {"results", "another structure of results"},
    {"grad", "another grad mode"}};

std::string difference_of(const SavedCapture& first, const SavedCapture& other) {
  for (const auto& [property, words] : kCommon) {
    const auto a = first.properties.find(property), b = other.properties.find(property);
    if (a != first.properties.end() && b != other.properties.end() && a->second != b->second)
      return std::string(words) + ": " + a->second + " and " + b->second;
  }
  for (const auto& [name, array] : first.weights)
    if (const auto found = other.weights.find(name);
        found != other.weights.end() && found->second != array)
      return "another value of '" + name +
             "': a family has the weights of one model; save all its examples in one state of it";
  return "";
}

}  // namespace

void expect_one_program(const std::vector<SavedCapture>& captures,
                        const std::vector<std::string>& folders) {
  for (size_t i = 0; i < captures.size(); ++i) {
    if (is_family(captures[i]))
      throw UserError("[unify] " + folders.at(i) +
                      ": expected the capture of one run, received a family; unify the captures "
                      "that it was made of, and this one's further examples");
    for (size_t j = 0; j < i; ++j)
      if (const std::string difference = difference_of(captures[j], captures[i]);
          !difference.empty())
        throw UserError("[unify] " + folders.at(i) + ": expected a capture of the program of " +
                        folders.at(j) + ", received one with " + difference);
  }
}

SavedCapture with_family(std::vector<SavedCapture> examples, const Cases& family) {
  SavedCapture whole = with_case(std::move(examples.at(0)), family.cases.at(0));
  for (size_t number = 1; number < family.cases.size(); ++number)
    whole.cases.push_back(with_case(std::move(examples.at(number)), family.cases[number]));
  if (!family.forks.empty()) whole.properties[kForks] = text_of_forks(family);
  return whole;
}

Cases family_of(const SavedCapture& saved) {
  Cases cases;
  cases.cases.push_back(case_of(saved));
  for (const SavedCapture& further : saved.cases) cases.cases.push_back(case_of(further));
  for (size_t number = 0; number < cases.cases.size(); ++number)
    cases.case_of_example.push_back(number);
  if (const auto forks = saved.properties.find(kForks); forks != saved.properties.end())
    read_forks(forks->second, cases);
  if (cases.cases.size() > 1 && cases.forks.empty())
    throw UserError("[bind] the family has cases, and no conditions that choose between them");
  return cases;
}

bool is_family(const SavedCapture& saved) { return saved.properties.contains(kSizes); }

Array resized(const Array& array, const Dims& sizes) {
  const Array from = array.contiguous();
  const Type type = tensor_type(array.type().dtype, sizes);
  const size_t item = item_size(type.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(type.nbytes()));
  for (int64_t i = 0; i < type.numel(); ++i) {
    int64_t rest = i, source = 0;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      source += rest % sizes[axis] % from.type().sizes[axis] * from.type().strides[axis];
      rest /= sizes[axis];
    }
    std::memcpy(bytes.data() + static_cast<size_t>(i) * item,
                from.data() + static_cast<size_t>(source) * item, item);
  }
  return Array::copy_of(type, bytes.data());
}

SavedCapture bound_capture(const SavedCapture& saved, const Cases& family, const SizeValues& sizes,
                           const NumberValues& numbers) {
  const std::vector<size_t> ways = shown_cases_at(family, sizes);
  const auto capture_of = [&](size_t number) -> const SavedCapture& {
    return number == 0 ? saved : saved.cases.at(number - 1);
  };
  SavedCapture bound = capture_of(ways.at(0));
  for (const size_t way : ways) {
    const SavedCapture& other = capture_of(way);
    bound.weights.insert(other.weights.begin(), other.weights.end());
    for (const std::string& schema : other.schemas)
      if (std::count(bound.schemas.begin(), bound.schemas.end(), schema) == 0)
        bound.schemas.push_back(schema);
  }
  bound.graph = graph_at(family, sizes, numbers);
  bound.formulas = {};
  bound.cases.clear();
  bound.properties.erase(kSizes);
  bound.properties.erase(kForks);
  bound.example_outputs.clear();
  size_t next = 0;
  for (const LazyTensor& input : bound.graph.inputs()) {
    if (input_kind(*input.node) != InputKind::user_input) continue;
    if (next == bound.example_inputs.size()) break;
    Array& example = bound.example_inputs[next++];
    if (example.type().sizes != input.sizes()) example = resized(example, input.sizes());
  }
  return bound;
}

}  // namespace composit
