#include "flashlight/backends/registry.h"

#include <map>
#include <mutex>
#include <sstream>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "composit/ir/literal.h"

namespace flashlight {
namespace {

using composit::Backend;
using composit::UserError;

struct Registry {
  std::mutex mutex = {};
  std::map<std::string, const Backend*> backends = {{"reference", &composit::reference()}};
};

Registry& registry() {
  static Registry registry;
  return registry;
}

void load_plugins_of_environment() {
  std::istringstream paths(composit::knob(composit::Knob::plugins));
  for (std::string path; std::getline(paths, path, ':');)
    if (!path.empty()) load_plugin(path);
}

std::map<std::string, const Backend*> all_backends() {
  static std::once_flag loaded;
  std::call_once(loaded, load_plugins_of_environment);
  const std::lock_guard lock(registry().mutex);
  return registry().backends;
}

bool is_identifier(const std::string& name) {
  return composit::is_word(name) && name.find_first_of(".:") == name.npos;
}

void expect_names(const Backend& backend) {
  std::map<std::string, int> count;
  for (const composit::Option& option : backend.options())
    if (!is_identifier(option.name) || ++count[option.name] > 1)
      throw UserError("[backend] '" + backend.name() +
                      "': expected options with distinct identifiers for names, received '" +
                      option.name + "'");
  if (!is_identifier(backend.name()))
    throw UserError("[backend] expected an identifier for a name, received '" + backend.name() +
                    "'");
}

}  // namespace

const Backend& backend_named(const std::string& name) {
  const std::map<std::string, const Backend*> all = all_backends();
  if (const auto found = all.find(name); found != all.end()) return *found->second;
  std::string names;
  for (const auto& [known, backend] : all) names += (names.empty() ? "" : ", ") + known;
  throw UserError("[backend] expected one of " + names + ", received '" + name + "'");
}

std::vector<const Backend*> backends() {
  std::vector<const Backend*> list;
  for (const auto& [name, backend] : all_backends()) list.push_back(backend);
  return list;
}

void register_backend(const Backend& backend) {
  expect_names(backend);
  const std::lock_guard lock(registry().mutex);
  const auto [found, is_new] = registry().backends.emplace(backend.name(), &backend);
  if (!is_new && found->second != &backend)
    throw UserError("[backend] expected a name that no backend has, received '" + backend.name() +
                    "'");
}

}  // namespace flashlight
