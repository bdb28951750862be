// Turns DOT into SVG with graphviz's `dot`, several processes at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace composit::drawing {

// One SVG per element of `pages`. UserError when `program` is missing or fails.
std::vector<std::string> render_svg(const std::vector<std::string>& pages,
                                    const std::string& program, size_t processes);

}  // namespace composit::drawing
