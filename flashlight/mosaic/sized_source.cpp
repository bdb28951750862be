#include "flashlight/mosaic/sized_source.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>

#include "composit/ir/error.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

constexpr size_t kPrepare = 0, kRun = 1, kKernels = 2;  // pieces
constexpr char kEnd = '\x03';                           // of a part of a key

// The text with numbers that are data as elements of `array`, from number `next` on.
std::string in_place(const text::OpenText& text, const std::vector<bool>& is_data, size_t next) {
  return text::filled(text, [&](size_t place) {
    return is_data[place] ? fmt::format("N[{}]", next++) : text::constant_text(text, place);
  });
}

// "const float N3 = fl::real_of<float>(N[3]);"
std::string declaration(size_t number, composit::DType dtype) {
  const std::string type = text::type_name(dtype);
  return dtype == composit::DType::int64
             ? fmt::format("  const int64_t N{0} = N[{0}];\n", number)
             : fmt::format("  const {0} N{1} = fl::real_of<{0}>(N[{1}]);\n", type, number);
}

}  // namespace

SplitSource split_of(const OpenSource& source) {
  SplitSource split;
  split.pieces.push_back(text::open_text(source.prepare));
  split.pieces.push_back(text::open_text(source.run));
  for (const EmittedKernel& kernel : source.kernels)
    split.pieces.push_back(text::open_text(kernel.definition));
  for (const text::OpenText& piece : split.pieces) split.key += piece.text + kEnd;
  split.key += source.called + kEnd + source.structs + kEnd + source.entries;
  return split;
}

SizedSource::SizedSource(std::vector<OpenSource> samples) : samples_(std::move(samples)) {
  COMPOSIT_ASSERT(!samples_.empty(), "a sized source has samples");
  for (const OpenSource& sample : samples_) {
    split_.push_back(split_of(sample));
    COMPOSIT_ASSERT(split_.back().key == split_[0].key, "samples are of one text");
  }
  key_ = split_[0].key;
  compare();
  write();
}

SizedSource SizedSource::with(OpenSource sample) const {
  std::vector<OpenSource> samples = samples_;
  samples.push_back(std::move(sample));
  return SizedSource(std::move(samples));
}

void SizedSource::compare() {
  for (size_t i = 0; i < split_[0].pieces.size(); ++i) {
    const std::vector<int64_t>& first = split_[0].pieces[i].numbers;
    Piece piece{.constants = first, .is_data = std::vector<bool>(first.size())};
    for (const SplitSource& other : split_)
      for (size_t place = 0; place < first.size(); ++place)
        if (other.pieces[i].numbers[place] != first[place]) piece.is_data[place] = true;
    pieces_.push_back(std::move(piece));
  }
}

std::optional<std::vector<int64_t>> SizedSource::numbers_at(const SplitSource& there) const {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < pieces_.size(); ++i)
    for (size_t place = 0; place < pieces_[i].constants.size(); ++place) {
      const int64_t number = there.pieces[i].numbers[place];
      if (pieces_[i].is_data[place])
        numbers.push_back(number);
      else if (number != pieces_[i].constants[place])
        return std::nullopt;
    }
  return numbers;
}

// A kernel's numbers are variables of its own: what it writes to memory cannot change them.
std::string SizedSource::declared(size_t piece, const text::OpenText& text) const {
  std::string declarations;
  size_t next = 0;
  const std::string filled = text::filled(text, [&](size_t place) {
    if (!pieces_[piece].is_data[place]) return text::constant_text(text, place);
    declarations += declaration(next, text.dtypes[place]);
    return fmt::format("N{}", next++);
  });
  const size_t mark = filled.find(kDeclarationsMark), line = filled.rfind('\n', mark) + 1;
  return filled.substr(0, line) + declarations + filled.substr(filled.find('\n', mark) + 1);
}

void SizedSource::write() {
  OpenSource source = samples_[0];
  const std::vector<text::OpenText>& pieces = split_[0].pieces;
  size_t next = 0;
  const auto data_count = [&](size_t piece) {
    return static_cast<size_t>(
        std::count(pieces_[piece].is_data.begin(), pieces_[piece].is_data.end(), true));
  };
  const auto body_of = [&](size_t piece) {
    const std::string text = in_place(pieces[piece], pieces_[piece].is_data, next);
    next += data_count(piece);
    return text;
  };
  source.prepare = body_of(kPrepare);
  source.run = body_of(kRun);
  std::map<std::string, std::string> known;  // names by text without the name
  std::vector<EmittedKernel> kernels;
  std::string places;
  for (size_t i = 0; i < source.kernels.size(); ++i) {
    const std::string& name = source.kernel_names[i];
    EmittedKernel kernel{declared(kKernels + i, pieces[kKernels + i]),
                         source.kernels[i].declaration};
    places += fmt::format("[[maybe_unused]] constexpr int at_{} = {};\n", name, next);
    next += data_count(kKernels + i);
    std::string rest = kernel.definition;
    rest.erase(rest.find(name), name.size());
    const auto [found, is_new] = known.try_emplace(std::move(rest), name);
    if (is_new)
      kernels.push_back(std::move(kernel));
    else
      places += fmt::format("constexpr auto& {} = {};\n", name, found->second);
  }
  source.kernels = std::move(kernels);
  source.prepare = places + "\n" + source.prepare;
  arrange(source);
  shared_ = std::make_shared<const Source>(std::move(source));
}

}  // namespace flashlight::mosaic
