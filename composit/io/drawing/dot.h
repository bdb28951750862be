// A page of a plan as text for graphviz.
#pragma once

#include <string>
#include <vector>

#include "composit/io/drawing/pages.h"

namespace composit::drawing {

// The links between pages: relative paths, empty if there is no such file.
struct Links {
  std::string pages;     // folder of the pages, as seen from this page: "" or "unet_pages/"
  std::string overview;  // the first page
  std::string contents;  // the index
};

class DotWriter {
 public:
  DotWriter(const Diagram& diagram, const Plan& plan);
  std::string page(uint32_t page, const Links& links) const;

 private:
  const Diagram& diagram_;
  const Plan& plan_;
  std::vector<std::vector<uint32_t>> sources_;  // by item
  std::vector<std::vector<uint32_t>> targets_;
};

}  // namespace composit::drawing
