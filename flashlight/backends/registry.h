// Backends by name: those that are linked, and those of plugins.
//
//   const composit::Backend& mosaic = backend_named("mosaic");
//   for (const composit::Backend* backend : backends()) std::cout << backend->name();
//   const BackendRegistration registration(my_backend());         // at namespace scope: linked
//   const composit::Backend& mine = load_plugin("libmine.so");
//
// Plugins that the environment variable FLASHLIGHT_PLUGINS names are there from the first question
// on. Functions may be called by several threads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "composit/op/backend.h"

namespace flashlight {

// UserError that lists the backends there are. "reference" is always one of them.
const composit::Backend& backend_named(const std::string& name);
// All, by name.
std::vector<const composit::Backend*> backends();

// `backend` has to live as long as the process. UserError where another one has its name, and where
// names of its options are no identifiers or not distinct.
void register_backend(const composit::Backend& backend);

// The backend of a shared library (composit/op/plugin.h), registered. It stays until the process
// ends; loading it again gives the same one. UserError where the file is no plugin, or was built
// for another version of the interface, or with a copy of composit of its own.
const composit::Backend& load_plugin(const std::filesystem::path& path);

// Registers a backend where it is made: as a variable at namespace scope.
struct BackendRegistration {
  explicit BackendRegistration(const composit::Backend& backend) { register_backend(backend); }
};

}  // namespace flashlight
