// Makes a loop of trips that a program repeats until a bool says otherwise.
//
//   std::vector<LoopShape> loops = loops_of(examples);    // while at model.cpp:12: 2 to 7 trips
//   Graph one = rolled(examples[0], loops);               // … composit::while_loop(…) …
//
// A capture of `while (question) body` has the nodes of the body as often as it was gone through,
// with a guard behind each. Where all these trips are equal but for what they read from the trip
// before, they are one loop. The first question stays a guard: a program may go through the loop at
// all, or not. Trips may be as few and as many as examples showed; for others the loop is refused.
#pragma once

#include <string>
#include <vector>

#include "composit/family/trips.h"
#include "composit/ir/graph.h"

namespace composit {

// A loop that some example goes through twice or more.
struct LoopShape {
  std::string place;                               // the source line that reads the bool
  bool goes_on = true;                             // the answer for one more trip
  std::vector<Symbol> operations;                  // by node of a trip
  std::vector<std::vector<TripOperand>> operands;  // by node and operand
  TripOperand question;                            // what the bool is read from
  int64_t least = 0, most = 0;                     // trips that were shown, without none
};

// The loops of these captures that were shown with two numbers of trips at least; none, or several
// forms of one, is no error: the captures then stay what they are.
std::vector<LoopShape> loops_of(const std::vector<Graph>& examples);

// The graph with its loops rolled. What has no such form stays as it is.
Graph rolled(const Graph& graph, const std::vector<LoopShape>& loops);

// "while at model.cpp:12: shown from 2 to 7 trips"
std::string print(const LoopShape& loop);

}  // namespace composit
