// Numbers in generated text that can be data of a call instead of constants.
//
//   std::string text = open_number(12);             // "12"
//   {
//     const OpenNumbers open;                  // on this thread, until the end of the scope
//     text = "x[i * " + open_number(12) + "]";
//   }
//   const OpenText split = open_text(text);    // "x[i * …]", and {12}
//   filled(split, [](size_t) { return "n0"; });    // "x[i * n0]"
//
// Text of the same program at other sizes has the same pieces and other numbers, so that one
// compiled text serves all of them. A number that is written in another way stays a constant. All
// open numbers are equally wide: line breaks, and choices by width, are the same for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "composit/ir/dtype.h"
#include "flashlight/text/size_names.h"

namespace flashlight::text {

// The number as text; while numbers are open, a place that keeps it.
std::string open_number(int64_t value);
// The same where C++ wants an `int` in braces.
std::string open_int(int64_t value);

// A finite number of float32 or float64: "0.5f".
std::string open_real(double value, composit::DType dtype);

// True if numbers are open on this thread.
bool has_open_numbers();

// While one lives, indices in text that this thread writes are wide. An int that is multiplied may
// wrap for all that a compiler knows (-fwrapv): it finds no neighbours in memory then, and keeps no
// sums in registers.
class WideIndices {
 public:
  explicit WideIndices(bool wide = true);
  ~WideIndices();
  WideIndices(const WideIndices&) = delete;
  WideIndices& operator=(const WideIndices&) = delete;

 private:
  bool before_;
};
// The type of axes, and of indices computed from them: "int", or "int64_t".
const char* index_type();
bool has_wide_indices();

// While names are set on this thread, a number that follows from sizes is written by them, in
// parentheses unless it is one name: "(12 * tokens)". Others are constants.
class NamedNumbers {
 public:
  explicit NamedNumbers(SizeNames& names);
  ~NamedNumbers();
  NamedNumbers(const NamedNumbers&) = delete;
  NamedNumbers& operator=(const NamedNumbers&) = delete;

 private:
  SizeNames* before_;
};
// Those that are set; nullptr if there are none.
SizeNames* current_names();
// True if the number is no constant of the text: it is open, or has a name.
bool is_open_number(int64_t value);
// The number without parentheses around it.
std::string bare_number(int64_t value);

// Begins the declaration of a constant of the program: "static constexpr fl::Packing kPacking", or
// of a constant of the call, while numbers are open.
std::string constant_head(const std::string& type_and_name);

// Opens numbers on this thread, or closes them again for a part of the text.
class OpenNumbers {
 public:
  explicit OpenNumbers(bool open = true);
  ~OpenNumbers();
  OpenNumbers(const OpenNumbers&) = delete;
  OpenNumbers& operator=(const OpenNumbers&) = delete;

 private:
  bool before_;
};

// A text and the numbers at its places, in order.
struct OpenText {
  std::string text;                     // with a mark at each place
  std::vector<int64_t> numbers;         // of reals, the bits of a double
  std::vector<composit::DType> dtypes;  // int64, float32 or float64
};
OpenText open_text(const std::string& text);
// The number at a place, as a constant.
std::string constant_text(const OpenText& text, size_t place);
// The text with what `fill` gives for each place, by its index.
std::string filled(const OpenText& text, const std::function<std::string(size_t place)>& fill);

}  // namespace flashlight::text
