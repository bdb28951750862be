// `--backend NAME`, `--plugin PATH` and the options of that backend, from its table.
//
//   BackendOptions options(*compile, Option::Use::programs, words);      // before it is parsed
//   options.backend().write_program(capture, folder, {.options = options.values()});
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "composit/op/backend.h"

namespace cli {

class BackendOptions {
 public:
  // Adds them to the command that is called. Its `words` are looked through for plugins, which are
  // loaded, and the name of the backend, as it decides which options there are. UserError for a
  // file that is no plugin, and for a backend that there is not. `fallback`: the backend if they
  // name none.
  BackendOptions(CLI::App& command, composit::Option::Use use,
                 const std::vector<std::string>& words, std::string fallback);

  const composit::Backend& backend() const { return *backend_; }
  // True if the command names a backend, or an option of it.
  bool are_given() const;
  // The given options. UserError that lists the backend's options for an option that it does not
  // have, or for a value of another type.
  composit::Options values() const;

 private:
  void add(const composit::Option& option);
  composit::OptionTable flags() const;

  CLI::App& command_;
  composit::Option::Use use_;
  const composit::Backend* backend_;
  std::string name_;
  std::vector<std::string> plugins_;
  std::map<std::string, std::string> texts_;  // value by option
  std::map<std::string, bool> switches_;
  std::map<std::string, CLI::Option*> parsed_;
};

}  // namespace cli
