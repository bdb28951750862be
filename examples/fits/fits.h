// Objectives in the manner of ADBench, compiled with their derivatives and put to use: each
// function here fits or plots one, and says what came out.
//
//   const Outcome outcome = mixture();
//   outcome.plot.save("mixture.svg");
#pragma once

#include <string>
#include <vector>

#include "examples/objectives/problem.h"
#include "examples/plot.h"
#include "flashlight/cpp/backend.h"

namespace fits {

struct Outcome {
  std::string name;  // of the picture
  std::string text;  // what was found
  bool good = false;
  examples::Plot plot;
};

Outcome gelu();               // mapped over a vector
Outcome sqrl();               // which way it is computed depends on the data
Outcome mixture();            // of Gaussians, by gradient ascent
Outcome lstm();               // by gradient descent
Outcome bundle_adjustment();  // by Gauss and Newton, with the compiled Jacobian
Outcome hand_tracking();      // the pose of a hand

// Float64 arrays to numbers and back.
composit::Array array(std::vector<int64_t> sizes, const std::vector<double>& elements);
std::vector<double> numbers(const composit::Array& array);
// `count` numbers from `low` to `high`.
std::vector<double> linspace(double low, double high, int count);
// Independent standard normal numbers (Box and Muller 1958).
std::vector<double> normal(int64_t count, uint64_t seed);

// Adam (Kingma and Ba 2015, "Adam: a method for stochastic optimization") on the first inputs of a
// problem whose gradient program gives the value, then the derivatives by those inputs.
class Adam {
 public:
  // `rate` below zero: ascent.
  Adam(objectives::Problem problem, double rate);
  // Changes the parameters; the value before that.
  double step();
  std::vector<double> input(size_t number) const { return numbers(problem_.inputs.at(number)); }

 private:
  struct Moments {
    std::vector<double> first, second;
  };
  objectives::Problem problem_;
  flashlight::cpp::Compiled gradient_;
  double rate_;
  int steps_ = 0;
  std::vector<Moments> moments_;
};

}  // namespace fits
