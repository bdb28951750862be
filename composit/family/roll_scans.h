// Makes a loop of trips that a program repeats as often as a size says.
//
//   std::vector<ScanShape> loops = roll_scans(examples);  // loop at cells.cpp:9: 5, 7, 3 trips
//   Graph one = rolled(graph, loops);                     // of another capture: composit::scan(…)
//
// A capture of `for (t = 0; t < x.size(1); ++t) h = cell(x.select(1, t), h)` has the nodes of the
// body once for each t. Where these are equal but for what they read from trips before, and for
// places they read at that go on by the same number, they are one `composit::scan`: values that are
// handed on are carried, `x` is a sequence, and what is read behind, as by `stack`, is an output.
// Only loops are rolled whose trips differ in number between examples. Nothing is guessed: the
// scan computes for each example what its trips do.
#pragma once

#include <string>
#include <vector>

#include "composit/family/trips.h"
#include "composit/ir/graph.h"

namespace composit {

// The form of the trips of a loop.
struct ScanShape {
  std::string place;                               // the source line of its first node
  std::vector<Hash> forms;                         // by node of a trip, see structure.h
  std::vector<std::vector<TripOperand>> operands;  // by node and operand
  // By node, what an index that it reads at grows by from trip to trip.
  std::vector<int64_t> steps;
  size_t loops = 0;            // how many a capture has; 0: not known yet
  std::vector<int64_t> shown;  // numbers of trips, by example and by place in the program
};

// Rolls the loops of these captures; their forms, each in what is left when those before it are
// rolled. None is no error: the captures then stay what they are.
std::vector<ScanShape> roll_scans(std::vector<Graph>& examples);

// The graph with its loops rolled. What has no such form stays as it is.
Graph rolled(const Graph& graph, const std::vector<ScanShape>& loops);

// "loop at cells.cpp:9: shown with 3, 5, 7 trips"
std::string print(const ScanShape& loop);

}  // namespace composit
