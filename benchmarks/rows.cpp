// Compile time of operations: the file of composit/ops/rows with the most rows, and it together
// with the next one as a single translation unit, by the build's own command without its cache.
//
//   ./dev bench rows [--rounds N]
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "benchmarks/report.h"

namespace {

namespace fs = std::filesystem;
using benchmarks::Report;

struct RowFile {
  fs::path path;
  int rows;
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Most rows first.
std::vector<RowFile> row_files() {
  std::vector<RowFile> files;
  for (const auto& entry : fs::directory_iterator(FLASHLIGHT_SOURCE_DIR "/composit/ops/rows")) {
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    files.push_back({entry.path(), count(text, ".schema = ")});
  }
  std::sort(files.begin(), files.end(),
            [](const RowFile& a, const RowFile& b) { return a.rows > b.rows; });
  return files;
}

void replace(std::string& text, const std::string& part, const std::string& by) {
  const size_t at = text.rfind(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part + " in " + text);
  text.replace(at, part.size(), by);
}

// The command by which the build compiles `file`, for `unit` in its place and an object beside
// that.
std::string compile_command(const fs::path& file, const fs::path& unit) {
  std::ifstream commands(FLASHLIGHT_COMPILE_COMMANDS);
  for (const auto& entry : nlohmann::json::parse(commands)) {
    if (entry.at("file") != file.string()) continue;
    std::string command = entry.at("command");
    replace(command, " -c " + file.string(), " -c " + unit.string());
    const size_t output = command.find(" -o ") + 4;
    command.replace(output, command.find(' ', output) - output, unit.string() + ".o");
    return "cd " + entry.at("directory").get<std::string>() + " && CCACHE_DISABLE=1 " + command;
  }
  throw std::runtime_error("no command for " + file.string() + " in " FLASHLIGHT_COMPILE_COMMANDS);
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

// One unit of all `files`.
void measure(const std::vector<RowFile>& files, const fs::path& folder, int rounds,
             Report& report) {
  const fs::path unit = folder / "unit.cpp";
  std::ofstream text(unit);
  std::string names;
  int rows = 0;
  for (const RowFile& file : files) {
    text << "#include \"" << file.path.string() << "\"\n";
    names += (names.empty() ? "" : "+") + file.path.stem().string();
    rows += file.rows;
  }
  text.close();
  const std::string command = compile_command(files[0].path, unit);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round)
    times.push_back(benchmarks::seconds([&] { run(command); }));
  report.raw(names, "rows", {static_cast<double>(rows)});
  report.raw(names, "seconds", times);
  report.target("7.4 seconds for " + std::to_string(rows) + " rows, " + names, "<=", 15,
                benchmarks::minimum(times));
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 3;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::max(1, std::atoi(argv[i + 1]));
  std::string folder = (fs::temp_directory_path() / "flashlight_rows_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);

  Report report("rows");
  const std::vector<RowFile> files = row_files();
  measure({files[0]}, folder, rounds, report);
  measure({files[0], files[1]}, folder, rounds, report);
  fs::remove_all(folder);
  return report.finish();
}
