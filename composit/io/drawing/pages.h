// Divides a diagram into pages that can be read.
//
//   for (const Page& page : plan_pages(diagram, 150).pages) draw(page);   // first: the whole
//
// A page shows one box. It opens the boxes inside, level by level, as long as all of a level fit;
// then those of the next level that are small, as are their siblings. A box that stays closed has a
// page of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "composit/io/drawing/diagram.h"

namespace composit::drawing {

struct Page {
  uint32_t box = 0;
  std::string file;  // "encoder.layer.0.svg"
};

struct Plan {
  std::vector<Page> pages;
  std::vector<uint32_t>
      page_of_box;  // the page that shows the box and nothing else; kNone for boxes drawn open
  std::vector<uint32_t> page_of_item;  // the page that shows the item; kNone for items folded away
};

// Pages of `limit` items at most; `split` must have been applied with the same limit.
Plan plan_pages(const Diagram& diagram, size_t limit);

}  // namespace composit::drawing
