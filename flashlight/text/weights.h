// Plans the weights of a program as structs of pointers, one per function: the weights that it
// reads itself, and the structs of the functions that it calls.
//
//   struct Weights { const float (*embedding)[768]; EncoderLayer encoder_layer[12]; };
#pragma once

#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::text {

using namespace loops;
using loops::Program;

struct WeightMember {
  std::string name;
  ValueId value = {};        // of the function, unless this is a struct
  StepIds calls = {};        // the invocations that take the struct, one element each
  FunctionId function = {};  // the function whose struct it is
  bool is_struct() const { return !calls.empty(); }
};

struct WeightStruct {
  std::string name;  // "EncoderLayer"
  std::vector<WeightMember> members;
};

// The structs by function, without members if a function has no weights. A weight of a function
// becomes an argument if a caller passes what is no weight of its own.
std::vector<WeightStruct> plan_weights(Program& program);

struct WeightPlace {
  size_t input;        // its number among the program's inputs
  std::string member;  // "encoder_layer[3].bias"
};

// The weights of the program, in the order of their pointers in the struct of the last function.
std::vector<WeightPlace> weight_places(const Program& program,
                                       const std::vector<WeightStruct>& structs);

}  // namespace flashlight::text
