// The table of contents of a picture of many pages.
#pragma once

#include <string>

#include "composit/io/drawing/dot.h"

namespace composit::drawing {

// The tree of scopes with counts and links, what the colours mean, and the overview.
std::string index_html(const std::string& title, const Diagram& diagram, const Plan& plan,
                       const Links& links);

}  // namespace composit::drawing
