// Objectives of computer vision and machine learning, compiled with their derivatives and put to
// use: activations are plotted, a mixture, an LSTM, cameras and a hand are fitted.
//
//   example_07_objectives [FOLDER]         writes an SVG each
//
// Fails where one does not come out as it has to.
#include <filesystem>
#include <iostream>

#include "composit/ir/error.h"
#include "examples/fits/fits.h"

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  bool good = true;
  try {
    std::filesystem::create_directories(folder);
    for (const auto& fit : {fits::gelu, fits::sqrl, fits::mixture, fits::lstm,
                            fits::bundle_adjustment, fits::hand_tracking}) {
      const fits::Outcome outcome = fit();
      std::cout << outcome.text << (outcome.good ? "" : ": not what was expected") << '\n';
      outcome.plot.save(folder / (outcome.name + ".svg"));
      good &= outcome.good;
    }
  } catch (const composit::UserError& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return good ? 0 : 1;
}
