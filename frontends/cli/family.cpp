// `flashlight unify` and `bind`: captures at several sizes as one family, and a capture of it.
#include "composit/family/family.h"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "composit/family/bind.h"
#include "composit/family/saved_family.h"
#include "composit/family/unify.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "frontends/cli/commands.h"

namespace cli {
namespace {

using composit::SavedCapture;
using composit::UserError;

// Sizes, and numbers that are none: "tokens=96", "lr=0.05".
struct Values {
  composit::SizeValues sizes;
  composit::NumberValues numbers;
};

std::string list_of_names(const std::map<std::string, composit::NumberOrigin>& numbers) {
  std::string text;
  for (const auto& [name, origin] : numbers) text += (text.empty() ? ", or numbers " : ", ") + name;
  return text;
}

Values values_of(const std::vector<std::string>& texts, const composit::Cases& family) {
  const auto known = composit::numbers_of(family);
  Values values;
  for (const std::string& text : texts) {
    const size_t sign = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, sign),
                      value = text.substr(std::min(sign + 1, text.size()));
    const auto number = composit::parse_float(value);
    const auto size = composit::parse_int(value);
    if (values.numbers.contains(name) || values.sizes.contains(name))
      throw UserError("[bind] expected one number for '" + name + "', received another one: '" +
                      text + "'");
    if (known.contains(name) && number)
      values.numbers[name] = *number;
    else if (!known.contains(name) && size)
      values.sizes[name] = *size;
    else
      throw UserError("[bind] expected sizes as tokens=96" + list_of_names(known) + ", received '" +
                      text + "'");
  }
  return values;
}

void print_sizes(const composit::Cases& family, std::ostream& out) {
  for (size_t i = 0; i < family.cases.size(); ++i) {
    if (family.cases.size() > 1) out << "case " << i + 1 << ", ";
    out << composit::sizes_text(family.cases[i]);
  }
  for (const std::string& line : composit::fork_lines(family)) out << line << '\n';
}

}  // namespace

void show_family(const SavedCapture& saved, std::ostream& out) {
  for (const SavedCapture& further : saved.cases)
    out << print(further.graph,
                 {.inline_elements = 8, .formulas = &further.formulas, .brief = true})
        << '\n';
  print_sizes(composit::family_of(saved), out);
}

int unify(const UnifyArguments& arguments, std::ostream& out) {
  std::vector<SavedCapture> captures;
  std::vector<composit::Graph> graphs;
  for (const std::string& folder : arguments.folders) {
    captures.push_back(composit::load(folder));
    graphs.push_back(captures.back().graph);
  }
  composit::expect_one_program(captures, arguments.folders);
  composit::UnifyOptions options{.names = arguments.names, .predicates = {}};
  for (const std::string& text : arguments.predicates) {
    const size_t end = std::min(text.find(' '), text.size());
    options.predicates.push_back(composit::predicate(
        text.substr(0, end), std::string_view(text).substr(std::min(end + 1, text.size()))));
  }
  const composit::Cases family = composit::unify_cases(graphs, options);
  std::vector<SavedCapture> firsts;
  size_t formulas = 0;
  for (size_t number = 0; number < family.cases.size(); ++number) {
    firsts.push_back(captures[composit::first_example_of(family, number)]);
    formulas += family.cases[number].formula_count();
  }
  composit::save(composit::with_family(std::move(firsts), family), arguments.target);
  out << "wrote " << arguments.target << ": " << family.cases[0].example.size() << " nodes, "
      << formulas << " formulas\n";
  print_sizes(family, out);
  return 0;
}

int bind(const BindArguments& arguments, std::ostream& out) {
  const SavedCapture saved = composit::load(arguments.folder);
  const composit::Cases family = composit::family_of(saved);
  const Values values = values_of(arguments.sizes, family);
  const SavedCapture bound = composit::bound_capture(saved, family, values.sizes, values.numbers);
  composit::save(bound, arguments.target);
  out << "wrote " << arguments.target << ": " << bound.graph.size() << " nodes\n";
  return 0;
}

}  // namespace cli
