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

composit::SizeValues size_values(const std::vector<std::string>& texts) {
  composit::SizeValues sizes;
  for (const std::string& text : texts) {
    const size_t sign = text.find('=');
    const auto number = sign == std::string::npos
                            ? std::nullopt
                            : composit::parse_int(std::string_view(text).substr(sign + 1));
    if (!number) throw UserError("[bind] expected sizes as tokens=96, received '" + text + "'");
    sizes[text.substr(0, sign)] = *number;
  }
  return sizes;
}

}  // namespace

int unify(const UnifyArguments& arguments, std::ostream& out) {
  std::vector<SavedCapture> captures;
  std::vector<composit::Graph> graphs;
  for (const std::string& folder : arguments.folders) {
    captures.push_back(composit::load(folder));
    graphs.push_back(captures.back().graph);
  }
  const composit::Family family = composit::unify(graphs, {.names = arguments.names});
  composit::save(composit::with_family(captures[0], family), arguments.target);
  out << "wrote " << arguments.target << ": " << family.example.size() << " nodes, "
      << family.formula_count() << " formulas\n"
      << composit::sizes_text(family);
  return 0;
}

int bind(const BindArguments& arguments, std::ostream& out) {
  const SavedCapture saved = composit::load(arguments.folder);
  const composit::Family family = composit::family_of(saved);
  const SavedCapture bound = composit::bound_capture(saved, family, size_values(arguments.sizes));
  composit::save(bound, arguments.target);
  out << "wrote " << arguments.target << ": " << bound.graph.size() << " nodes\n";
  return 0;
}

}  // namespace cli
