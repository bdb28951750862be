// Where a node comes from: the path of its module and its line, of what torch notes of it.
//
//   const NodeOrigin origin = origin_of(node["metadata"]);   // {"encoder.layer.0", "net.py:12 in
//   …"}
#pragma once

#include <string>

#include "composit/interchange/pt2_read/json.h"

namespace composit::pt2_read {

struct NodeOrigin {
  std::string scope = {}, source = {};  // empty: not said
};

NodeOrigin origin_of(const Json& metadata);

}  // namespace composit::pt2_read
