// Names, and paths of modules as in the annotation `scope` of nodes: "encoder.layer.0.attention".
//
//   is_within("encoder.layer.0", "encoder.layer");                    // true, as of itself
//   common_scope("encoder.layer.0", "encoder.layer.1");               // "encoder.layer"
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace composit {

// True if the module `path` is the module `scope` (not empty) or lies in it.
bool is_within(std::string_view path, std::string_view scope);
// The longest scope that contains both; empty if there is none.
std::string common_scope(std::string_view a, std::string_view b);

// A name that is not taken yet: `base`, or `base` with the first free number after it. The name is
// added to `taken`.
std::string unused_name(const std::string& base, std::set<std::string>& taken);

}  // namespace composit
