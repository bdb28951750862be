// Finds backends by name: those that are linked, and those of plugins.
//
//   const composit::Backend& mosaic = backend_named("mosaic");
//   for (const composit::Backend* backend : backends()) std::cout << backend->name();
//   const BackendRegistration registration(my_backend());         // at namespace scope: linked
//   const composit::Backend& mine = load_plugin("libmine.so");
//
// The first query loads the plugins that the environment variable FLASHLIGHT_PLUGINS names. Several
// threads may call these functions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "composit/op/backend.h"

namespace flashlight {

// The backend of this name. UserError that lists all if there is none; "reference" always exists.
const composit::Backend& backend_named(const std::string& name);
// All backends, in order of their names.
std::vector<const composit::Backend*> backends();

// `backend` has to live as long as the process. UserError if another one has its name, or if its
// name or those of its options are no identifiers, or not distinct.
void register_backend(const composit::Backend& backend);

// Loads the backend of a shared library (composit/op/plugin.h) and registers it. It stays until the
// process ends; loading it again gives the same one. UserError if the file is no plugin, or was
// built for another version of the interface, or with a copy of composit of its own.
const composit::Backend& load_plugin(const std::filesystem::path& path);

// Registers a backend when it is initialised, as a variable at namespace scope.
struct BackendRegistration {
  explicit BackendRegistration(const composit::Backend& backend) { register_backend(backend); }
};

}  // namespace flashlight
