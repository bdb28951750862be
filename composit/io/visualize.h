// Pictures of graphs.
//
//   visualize(graph, "resnet50.svg");     // a large graph also gets the folder resnet50_pages
//   visualize(graph, "resnet50");         // a folder: index.html and pictures
//   visualize(graph, "resnet50.dot");     // for graphviz or another tool
//   visualize(output_a, output_b);        // what leads to these tensors, into graph.svg
//
// Module scopes are boxes; equal layers in a row are drawn once, marked "×12". A node shows its
// operation, its output's type, the parameters it reads, and its effects; pointing at it shows
// attributes and source line. A graph of more than `max_nodes` is divided into pages, one per
// scope, linked with each other: boxes that are closed lead to theirs.
//
// UserError when graphviz (`dot`) is missing, or a file cannot be written.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>

#include "composit/ir/graph.h"

namespace composit {

struct VisualizeOptions {
  size_t max_nodes = 150;    // in one picture; a larger graph is divided into pages of half as many
  bool fold_repeats = true;  // equal layers in a row are drawn once
  bool open_bodies = false;  // shows what composite nodes are made of
  size_t processes = 0;      // number of graphviz processes at a time; 0: one per core
  std::string dot = "dot";   // the program
};

// `path` ends in .svg, .dot or .gv, or names a folder.
void visualize(const Graph& graph, const std::filesystem::path& path,
               const VisualizeOptions& options = {});

// Draws all that leads to the tensors, into graph.svg in the working directory.
template <std::same_as<LazyTensor>... Others>
void visualize(const LazyTensor& first, const Others&... others) {
  visualize(Graph({.outputs = {first, others...}}), "graph.svg");
}

// The whole graph on one page.
std::string to_dot(const Graph& graph, const VisualizeOptions& options = {});

}  // namespace composit
