// The common part of backends that write C++: flags for its compiler, and a class that calls it in
// this process.
//
//   class CppCode : public GeneratedCode {
//     void run(InputBuffers inputs, Buffers results, fl::Generator* generator) const override {
//       call(inputs, results, generator, [&](const Pointers& at) { return entry_(…); });
//     }
//   };
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/package/source.h"
#include "flashlight/runtime/random.hpp"

namespace flashlight::package {

// Compiler flags for code that runs in this process.
std::vector<std::string> default_flags();

// LibTorch's default seed, for programs that set none.
constexpr uint64_t kDefaultSeed = 67280421310721;

// The arguments of generated code: first elements of arguments, weights and results.
struct Pointers {
  std::vector<const void*> arguments = {}, weights = {};
  std::vector<void*> results = {};
  fl::Generator* generator = nullptr;  // nullptr if nothing is drawn
};

class GeneratedCode : public composit::Code {
 public:
  const std::string& source() const override { return source_->text; }
  bool draws() const override { return source_->draws; }

 protected:
  GeneratedCode(composit::Ports ports, std::shared_ptr<const Source> source)
      : Code(std::move(ports)), source_(std::move(source)) {}

  // Weight number `place` of the source: a constant, or an input.
  virtual const void* weight(size_t place, composit::InputBuffers inputs) const;

  // `enter` calls the code and returns nullptr, or a message, which becomes a UserError.
  template <class Enter>
  void call(composit::InputBuffers inputs, composit::Buffers results, fl::Generator* generator,
            Enter enter) const {
    std::optional<fl::Generator> fresh;
    if (generator == nullptr && draws()) generator = &fresh.emplace(kDefaultSeed);
    check(enter(pointers(inputs, results, generator)));
  }

 private:
  Pointers pointers(composit::InputBuffers inputs, composit::Buffers results,
                    fl::Generator* generator) const;
  void check(const char* error) const;

  std::shared_ptr<const Source> source_;
};

// A backend that lowers graphs to programs of loops: all these have code for the same operations.
class GeneratingBackend : public composit::Backend {
 public:
  bool has_code(const composit::Operation& operation) const override;
};

}  // namespace flashlight::package
