// The weights of a program as structs of pointers, one per function: those it reads itself, and the
// structs of the functions it calls.
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
  ValueId value = {};        // of the function; unless it is a struct
  StepIds calls = {};        // the invocations it is for, one element each
  FunctionId function = {};  // whose struct it is
  bool is_struct() const { return !calls.empty(); }
};

struct WeightStruct {
  std::string name;  // "EncoderLayer"
  std::vector<WeightMember> members;
};

// By function; without members where a function has no weights. A weight of a function that its
// caller does not have as a weight becomes an argument.
std::vector<WeightStruct> plan_weights(Program& program);

struct WeightPlace {
  size_t input;        // of the program
  std::string member;  // "encoder_layer[3].bias"
};

// The weights in the order in which their pointers lie in the struct of the last function.
std::vector<WeightPlace> weight_places(const Program& program,
                                       const std::vector<WeightStruct>& structs);

}  // namespace flashlight::text
