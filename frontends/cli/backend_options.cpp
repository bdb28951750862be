#include "frontends/cli/backend_options.h"

#include <algorithm>

#include "composit/io/file.h"
#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"

namespace cli {
namespace {

using composit::Backend;
using composit::Option;
using composit::UserError;

// The values of this option, given as "--name VALUE" or "--name=VALUE".
std::vector<std::string> values_behind(const std::string& name,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> values;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) values.push_back(words[i + 1]);
    if (words[i].starts_with(name + "=")) values.push_back(words[i].substr(name.size() + 1));
  }
  return values;
}

bool is_switch(const Option& option) { return std::holds_alternative<bool>(option.fallback); }
bool is_on(const Option& option) { return is_switch(option) && std::get<bool>(option.fallback); }

// "--threads", "--no-winograd", "--link aten"
std::string flag_of(const Option& option) {
  if (!option.flag.empty()) return option.flag;
  std::string name = option.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return (is_on(option) ? "--no-" : "--") + name;
}

std::string help_of(const Option& option) {
  if (is_switch(option)) return (is_on(option) ? "switches off: " : "") + option.help;
  const std::string type = option.is_file ? "a file" : composit::type_name(option.fallback);
  const bool has_fallback = option.fallback != composit::OptionValue("");
  return option.help + " (" + type +
         (has_fallback ? "; " + composit::text_of(option.fallback) + " if left out)" : ")");
}

std::string help_of_backends() {
  std::string text = "who writes it:";
  for (const Backend* backend : flashlight::backends())
    text += "\n" + backend->name() + (backend->help().empty() ? "" : ": " + backend->help());
  return text;
}

// The options of all other backends.
std::string footer_for(const Backend& chosen, Option::Use use) {
  std::string text;
  for (const Backend* backend : flashlight::backends()) {
    if (backend == &chosen) continue;
    std::string lines;
    for (const Option& option : backend->options())
      if (option.use == Option::Use::both || option.use == use)
        lines += "  " + flag_of(option) + "  " + help_of(option) + "\n";
    if (!lines.empty()) text += "Options with --backend " + backend->name() + ":\n" + lines + "\n";
  }
  return text;
}

}  // namespace

BackendOptions::BackendOptions(CLI::App& command, Option::Use use,
                               const std::vector<std::string>& words, std::string fallback)
    : command_(command), use_(use), name_(std::move(fallback)) {
  for (const std::string& path : values_behind("--plugin", words)) flashlight::load_plugin(path);
  for (const std::string& name : values_behind("--backend", words)) name_ = name;
  backend_ = &flashlight::backend_named(name_);
  command.add_option("--backend", name_, help_of_backends());
  command.add_option("--plugin", plugins_, "a shared library with another backend")
      ->take_all()
      ->expected(1);
  for (const Option& option : backend_->options())
    if (option.use == Option::Use::both || option.use == use) add(option);
  command.footer(footer_for(*backend_, use));
  command.allow_extras();
}

void BackendOptions::add(const Option& option) try {
  const std::string flag = flag_of(option);
  const size_t space = flag.find(' ');
  std::string& text = texts_[option.name];
  CLI::Option*& parsed = parsed_[option.name];
  if (space != flag.npos)
    parsed = command_.add_option(flag.substr(0, space), text, help_of(option))
                 ->check(CLI::IsMember({flag.substr(space + 1)}));
  else if (is_switch(option))
    parsed = command_.add_flag(flag, switches_[option.name], help_of(option));
  else
    parsed = command_.add_option(flag, text, help_of(option));
  parsed->group("Options of " + backend_->name());
} catch (const CLI::OptionAlreadyAdded&) {
  throw UserError("[" + backend_->name() +
                  "] expected options that the command line does not have, "
                  "received '" +
                  flag_of(option) + "'");
}

// The table as the command line has it.
composit::OptionTable BackendOptions::flags() const {
  composit::OptionTable table = backend_->options();
  for (Option& option : table) option.name = flag_of(option);
  return table;
}

bool BackendOptions::are_given() const {
  return command_.get_option("--backend")->count() > 0 || !values().empty();
}

composit::Options BackendOptions::values() const {
  for (const std::string& word : command_.remaining())
    composit::find_option(flags(), word, use_, backend_->name());
  composit::Options values;
  for (const Option& option : backend_->options()) {
    const auto found = parsed_.find(option.name);
    if (found == parsed_.end() || found->second->count() == 0) continue;
    const std::string& text = texts_.at(option.name);
    if (is_switch(option))
      values[option.name] = !is_on(option);
    else if (option.is_file)
      values[option.name] = std::string(composit::io::MappedFile::open(text)->text());
    else
      values[option.name] = composit::parse_option(option, text, backend_->name());
  }
  return values;
}

}  // namespace cli
