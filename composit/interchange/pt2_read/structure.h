// torch's tree specs as the structure of arguments and results.
//
//   Structure arguments = structure_of_spec(text, {{}, {.kind = Structure::Kind::constant, …}});
//   text_of(arguments);       // the property of a saved capture
//
// Classes are not known here: an object that has keys is a map, another one a tuple.
#pragma once

#include <string>
#include <vector>

#include "composit/interchange/pt2/structure.h"
#include "composit/interchange/pt2_read/json.h"

namespace composit::pt2_read {

using pt2::Structure;

// `leaves`: tensors and constants, one per leaf of the spec. `fields`: the names of the fields of
// named tuples by their type, as the file has them. UserError for text that is no spec, or has
// another number of leaves.
Structure structure_of_spec(const std::string& text, const std::vector<Structure>& leaves,
                            const Json& fields);

// The structure as saved captures have it.
std::string text_of(const Structure& structure);

}  // namespace composit::pt2_read
