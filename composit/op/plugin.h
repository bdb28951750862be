// A backend as a shared library, which programs load by its path or FLASHLIGHT_PLUGINS.
//
//   // class Mine : public composit::Backend
//   COMPOSIT_BACKEND_PLUGIN(Mine)       // once in the library, outside of namespaces
//
// The library is linked with none of composit's (in CMake: `composit::plugin`, which is its headers
// alone): its symbols are those of the program that loads it, so that a graph of one is a graph of
// the other.
#pragma once

#include "composit/ir/symbol.h"
#include "composit/op/backend.h"

// The version of the interface that a plugin is compiled against. Every change of a header of
// composit that plugins include raises it. Strings of libstdc++ have two forms.
#define COMPOSIT_BACKEND_INTERFACE "2"

#define COMPOSIT_TEXT_OF(x) #x
#define COMPOSIT_EXPANDED_TEXT_OF(x) COMPOSIT_TEXT_OF(x)
// The file of a plugin has this text in it, which is read before any of its code runs.
#define COMPOSIT_PLUGIN_HEAD "composit plugin, interface "
#define COMPOSIT_PLUGIN_INTERFACE \
  COMPOSIT_BACKEND_INTERFACE ", libstdc++ ABI " COMPOSIT_EXPANDED_TEXT_OF(_GLIBCXX_USE_CXX11_ABI)

namespace composit {

// The data that a plugin gives to the program that loads it.
struct Plugin {
  const Backend* backend;  // lives as long as the process
  // The empty name as the plugin knows it: another one than the loading program's says that the
  // plugin has a copy of composit of its own.
  const std::string* empty_name;
};

}  // namespace composit

// Makes a shared library a plugin: `BACKEND` is its class, which has a default constructor.
#define COMPOSIT_BACKEND_PLUGIN(BACKEND)                                                       \
  extern "C" {                                                                                 \
  __attribute__((visibility("default"), used)) extern const char composit_plugin_interface[] = \
      COMPOSIT_PLUGIN_HEAD COMPOSIT_PLUGIN_INTERFACE;                                          \
  __attribute__((visibility("default"))) void composit_plugin(composit::Plugin& plugin) {      \
    static const BACKEND backend;                                                              \
    plugin = {&backend, &composit::Symbol().str()};                                            \
  }                                                                                            \
  }
