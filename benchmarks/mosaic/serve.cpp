#include "benchmarks/mosaic/serve.h"

#include <iostream>
#include <sstream>
#include <string>

#include "benchmarks/report.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"

namespace benchmarks {
namespace {

std::vector<double> times_of(const std::function<void()>& run, int warm, int calls) {
  for (int i = 0; i < warm; ++i) run();
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) times.push_back(seconds(run));
  return times;
}

}  // namespace

void serve(const Served& served) {
  std::cout << served.about.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    nlohmann::json answer;
    if (command == "time") {
      int warm = 0, calls = 0;
      words >> warm >> calls;
      answer = times_of(served.run, warm, calls);
    } else if (command == "save") {
      std::string file;
      std::getline(words >> std::ws, file);
      save_results(served.results(), file);
    } else {
      throw composit::UserError("[benchmark] unknown command '" + line + "'");
    }
    std::cout << answer.dump() << std::endl;
  }
}

Results named_outputs(const std::vector<composit::Array>& outputs) {
  Results results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.emplace("output." + std::to_string(i), outputs[i]);
  return results;
}

void save_results(const Results& results, const std::filesystem::path& file) {
  composit::Safetensors contents;
  contents.tensors.insert(results.begin(), results.end());
  composit::write_safetensors(contents, file);
}

}  // namespace benchmarks
