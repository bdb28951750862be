// Names, and paths of modules as in the annotation `scope` of nodes: "encoder.layer.0.attention".
//
//   is_within("encoder.layer.0", "encoder.layer");                    // true, as of itself
//   common_scope("encoder.layer.0", "encoder.layer.1");               // "encoder.layer"
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace composit {

// Whether the module of `path` is that of `scope`, which is not empty, or a part of it.
bool is_within(std::string_view path, std::string_view scope);
// The longest scope that both are within; empty where there is none.
std::string common_scope(std::string_view a, std::string_view b);

// A name of its own: `base`, or with a number behind it, the first that is not taken yet. It is
// taken then.
std::string unused_name(const std::string& base, std::set<std::string>& taken);

}  // namespace composit
