// The labels of nodes and boxes, in graphviz's HTML-like notation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/io/drawing/diagram.h"

namespace composit::drawing {

inline constexpr std::string_view kGrey = "#6b7280";
inline constexpr std::string_view kDark = "#24292f";
inline constexpr std::string_view kRed = "#b5483f";
inline constexpr std::string_view kBrown = "#85611c";

// "encoder.layer.0 … 11"
std::string title_of(const Box& box);
// The same with " ×12" where boxes repeat.
std::string title_with_repeats(const Box& box);

// Escaped and of readable length; never empty.
std::string label(std::string_view text);
std::string bold(std::string_view text);
std::string font(std::string_view text, int size, std::string_view colour);
// Lines below each other.
std::string stacked(const std::vector<std::string>& lines);

// Scope, operation, types, parameters and effects. Names are given as seen from `path`.
std::string item_label(const Item& item, const std::string& path);
// Title, size and `summary`, for a box that is closed.
std::string closed_label(const Box& box, const std::vector<std::string>& summary);
// For a box that is open.
std::string cluster_label(const Box& box);

}  // namespace composit::drawing
