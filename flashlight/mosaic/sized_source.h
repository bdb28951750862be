// One text for a program at several sizes: what differs between them is data of a call.
//
//   const SizedSource sized({emit_open(at_17, "bert"), emit_open(at_250, "bert")});
//   build({sized.source()}, {});                               // compiled once
//   const auto numbers = sized.numbers_at(emit_open(at_100, "bert"));
//   // run(…, numbers->data()) is the program at 100
//
// The plan at a size is made as always, and so is its text. It is the compiled one if it has the
// same pieces and, where the compiled text has constants, the same numbers; all other numbers are
// passed. So nothing is guessed: a plan whose text differs in anything else needs the compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flashlight/mosaic/emit.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {

// The text of a program split at its open numbers: `prepare`, `run`, then kernels.
struct SplitSource {
  std::vector<text::OpenText> pieces;
  std::string key;  // everything but the numbers
};
SplitSource split_of(const OpenSource& source);

class SizedSource {
 public:
  // `samples`: the program at several sizes, with equal keys.
  explicit SizedSource(std::vector<OpenSource> samples);

  const std::string& key() const { return key_; }
  const Source& source() const { return *shared_; }
  std::shared_ptr<const Source> shared() const { return shared_; }
  // The data of a call of the compiled text; nothing where a number differs that is a constant in
  // it. `there` must have the same key.
  std::optional<std::vector<int64_t>> numbers_at(const SplitSource& there) const;
  // The same text with what differs at one more size as data.
  SizedSource with(OpenSource sample) const;

 private:
  struct Piece {
    std::vector<int64_t> constants;  // by place
    std::vector<bool> is_data;       // by place
  };
  void compare();
  void write();
  std::string declared(size_t piece, const text::OpenText& text) const;

  std::vector<OpenSource> samples_;
  std::vector<SplitSource> split_;  // by sample
  std::string key_;
  std::vector<Piece> pieces_;
  std::shared_ptr<const Source> shared_;
};

}  // namespace flashlight::mosaic
