// Lists the operations that composit knows.
#include <algorithm>
#include <iomanip>
#include <map>
#include <ostream>

#include "composit/ops/operations.h"
#include "flashlight/backends/registry.h"
#include "frontends/cli/commands.h"

namespace cli {
namespace {

using composit::Operation;

std::string form_of(const Operation& operation) {
  if (operation.row.scalar) return "scalar";
  if (operation.row.loops) return "loops";
  return operation.row.decompose ? "decomposition" : "native";
}

// The source of its derivative; `composit/ad/vjp.cpp` asks in the same order.
std::string derivative_of(const Operation& operation) {
  if (operation.row.vjp) return "rule";
  if (operation.row.decompose) return "decomposition";
  return operation.row.native ? "none" : "transposition";
}

// The names of the backends that have code for it, or "-".
std::string backends_for(const Operation& operation) {
  std::string names;
  for (const composit::Backend* backend : flashlight::backends())
    if (backend->has_code(operation)) names += (names.empty() ? "" : " ") + backend->name();
  return names.empty() ? "-" : names;
}

void print_counts(const char* title, const std::map<std::string, size_t>& counts,
                  std::ostream& out) {
  out << title;
  const char* separator = " ";
  for (const auto& [name, count] : counts) {
    out << separator << count << ' ' << name;
    separator = ", ";
  }
  out << '\n';
}

}  // namespace

int ops(const std::string& filter, std::ostream& out) {
  std::map<std::string, size_t> forms, derivatives, backends;
  size_t count = 0;
  for (const Operation* operation : composit::all_operations()) {
    const std::string& name = operation->schema.name.str();
    if (name.find(filter) == std::string::npos) continue;
    ++count;
    ++forms[form_of(*operation)];
    ++derivatives[derivative_of(*operation)];
    const std::string compiled = backends_for(*operation);
    ++backends[compiled == "-" ? "by none" : "by " + compiled];
    out << std::left << std::setw(52) << name << std::setw(15) << form_of(*operation)
        << std::setw(15) << derivative_of(*operation) << compiled << '\n';
  }
  out << count << " operations; all are inferred and evaluated\n";
  print_counts("defined by", forms, out);
  print_counts("differentiated by", derivatives, out);
  print_counts("compiled:", backends, out);
  return count == 0 ? 1 : 0;
}

}  // namespace cli
