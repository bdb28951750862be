#include "examples/generated_program.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "flashlight/cpp/sized.h"

namespace examples {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw composit::UserError("[generate] cannot write " + path.string());
}

// The first line in which two texts differ, of both.
std::string first_difference(const std::string& stored, const std::string& now) {
  const auto [a, b] = std::mismatch(stored.begin(), stored.end(), now.begin(), now.end());
  const auto line = [](const std::string& text, std::string::const_iterator at) {
    const auto begin = std::find(std::make_reverse_iterator(at), text.rend(), '\n').base();
    return std::string(begin, std::find(at, text.end(), '\n'));
  };
  const auto number = 1 + std::count(stored.begin(), a, '\n');
  return "line " + std::to_string(number) + "\n- " + line(stored, a) + "\n+ " + line(now, b);
}

// Prints a difference.
bool is_stored(const std::filesystem::path& path, const std::string& text) {
  const std::string stored = read(path);
  if (stored == text) return true;
  std::cout << path.string() << " is not what is written now: " << first_difference(stored, text)
            << '\n';
  return false;
}

}  // namespace

int generate(int argc, char** argv, const flashlight::Cuda& cuda,
             const std::function<std::vector<Program>()>& programs,
             const std::function<std::vector<SizedProgram>()>& sized) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: " << argv[0] << " [--check] FOLDER\n";
    return 2;
  }
  const std::pair<const char*, composit::BackendChoice> languages[] = {{".cpp", {"cpp"}},
                                                                       {".cu", cuda}};
  bool same = true;
  const auto take = [&](const std::string& file, const std::string& text) {
    const auto path = std::filesystem::path(argv[argc - 1]) / file;
    if (check)
      same = is_stored(path, text) && same;
    else
      write(path, text);
  };
  try {
    for (const SizedProgram& program : sized ? sized() : std::vector<SizedProgram>())
      take(program.name + ".cpp",
           flashlight::cpp::SizedProgram(program.shown, {.name = program.name}).source().text);
    for (const Program& program : programs())
      for (const auto& [suffix, backend] : languages) {
        const std::string text = flashlight::backend_named(backend.name)
                                     .source(program.graph, {.name = program.name,
                                                             .results = program.results,
                                                             .options = backend.options});
        take(program.name + suffix, text);
      }
  } catch (const composit::UserError& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return same ? 0 : 1;
}

}  // namespace examples
