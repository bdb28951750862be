#include "flashlight/mosaic/tile_drawing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "composit/ir/error.h"

namespace flashlight::mosaic {
namespace {

constexpr int64_t kMostCells = 64, kCell = 30, kMargin = 44;
constexpr int kBelow = 7;  // of the middle of a cell: the line, so that the number can be read
constexpr std::array<const char*, 4> kColors = {"#dbeafe", "#fef3c7", "#fce7f3", "#dcfce7"};

class Drawing {
 public:
  Drawing(const Tiling& tiling, size_t rows, size_t columns)
      : tiling_(tiling), dimension_{rows, columns} {
    for (size_t side = 0; side < 2; ++side) {
      if (dimension_[side] >= tiling.sizes().size() || rows == columns)
        throw composit::UserError("[draw] expected two dimensions of the tensor");
      for (const Tiling::Loop& loop : tiling.loops())
        if (loop.dimension == dimension_[side]) {
          count_[side] = std::max(count_[side], loop.extent * loop.step);
          if (loop.step > 1) steps_[side].push_back(loop.step);
        }
      if (count_[side] > kMostCells)
        throw composit::UserError(fmt::format("[draw] at most {} rows and columns, received {}",
                                              kMostCells, count_[side]));
    }
  }

  std::string svg() {
    const int64_t width = count_[1] * kCell + 2 * kMargin, height = count_[0] * kCell + 2 * kMargin;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"9\" fill=\"#333\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        width, height);
    add("<text x=\"{}\" y=\"20\" font-size=\"14\">{}</text>\n", kMargin, title());
    cells();
    path();
    edges();
    numbers();
    return text_ + "</svg>\n";
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }
  int64_t at(int64_t cell) const { return kMargin + cell * kCell; }
  double center(int64_t cell) const { return static_cast<double>(at(cell)) + kCell / 2.0; }
  bool is_padding(int64_t row, int64_t column) const {
    return row >= tiling_.sizes()[dimension_[0]] || column >= tiling_.sizes()[dimension_[1]];
  }
  int64_t offset(int64_t row, int64_t column) const {
    return tiling_.offset(dimension_[0], row) + tiling_.offset(dimension_[1], column);
  }
  std::string title() const {
    std::string title, text = print(tiling_.schema());
    for (const char c : text) title += c == '>' ? std::string("&gt;") : std::string(1, c);
    return fmt::format("{}, for [{}]", title, fmt::join(tiling_.sizes(), ", "));
  }

  void cells() {
    const auto block = [&](size_t side, int64_t index) {
      return steps_[side].empty() ? 0 : index / steps_[side].front() % 2;
    };
    for (int64_t row = 0; row < count_[0]; ++row)
      for (int64_t column = 0; column < count_[1]; ++column) {
        const auto color = static_cast<size_t>(2 * block(0, row) + block(1, column));
        add("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#fff\"/>\n",
            at(column), at(row), kCell, kCell,
            is_padding(row, column) ? "#d4d4d4" : kColors[color]);
      }
  }

  void path() {
    std::vector<std::array<int64_t, 3>> places;
    for (int64_t row = 0; row < count_[0]; ++row)
      for (int64_t column = 0; column < count_[1]; ++column)
        places.push_back({offset(row, column), row, column});
    std::sort(places.begin(), places.end());
    std::string line;
    for (const auto& [offset, row, column] : places)
      line += fmt::format(" {:g},{:g}", center(column), center(row) + kBelow);
    add("<polyline points=\"{}\" fill=\"none\" stroke=\"#dc2626\" stroke-width=\"1.4\" "
        "stroke-opacity=\"0.45\" stroke-linejoin=\"round\"/>\n",
        line.empty() ? line : line.substr(1));
    if (!places.empty())
      add("<circle cx=\"{:g}\" cy=\"{:g}\" r=\"3\" fill=\"#dc2626\"/>\n", center(places[0][2]),
          center(places[0][1]) + kBelow);
  }

  // A line before every block, the thicker the further out its loop is.
  void edges() {
    for (size_t side = 0; side < 2; ++side) {
      const int64_t length = count_[1 - side] * kCell;
      std::vector<int64_t> steps = steps_[side];
      for (size_t i = steps.size(); i-- > 0;)
        for (int64_t index = 0; index <= count_[side]; index += steps[i])
          edge(side, index, length, i);
      for (const int64_t end : {int64_t{0}, count_[side]}) edge(side, end, length, 0);
    }
  }
  void edge(size_t side, int64_t index, int64_t length, size_t depth) {
    const int64_t place = at(index);
    const char *thickness = depth == 0   ? "2.6"
                            : depth == 1 ? "1.5"
                                         : "0.8",
               *color = depth == 0 ? "#1f2937" : "#6b7280";
    const std::string line = side == 0 ? fmt::format("M{} {}h{}", kMargin, place, length)
                                       : fmt::format("M{} {}v{}", place, kMargin, length);
    add("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"square\"/>\n", line,
        color, thickness);
  }

  void numbers() {
    for (int64_t row = 0; row < count_[0]; ++row)
      for (int64_t column = 0; column < count_[1]; ++column)
        add("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\"{}>{}</text>\n", center(column),
            center(row) - 1, is_padding(row, column) ? " fill=\"#8a8a8a\"" : "",
            offset(row, column));
    for (size_t side = 0; side < 2; ++side) {
      const char name = tiling_.schema().dimensions[dimension_[side]];
      const double middle = static_cast<double>(at(0) + count_[side] * kCell / 2);
      add("<text x=\"{:g}\" y=\"{:g}\" font-size=\"13\" text-anchor=\"middle\">{}</text>\n",
          side == 0 ? kMargin / 2.0 : middle, side == 0 ? middle + 4 : kMargin - 8.0, name);
    }
  }

  const Tiling& tiling_;
  std::array<size_t, 2> dimension_;
  std::array<int64_t, 2> count_ = {0, 0};      // of rows and columns, with padding
  std::array<std::vector<int64_t>, 2> steps_;  // of blocks, the outermost first
  std::string text_;
};

}  // namespace

std::string draw(const Tiling& tiling, size_t rows, size_t columns) {
  return Drawing(tiling, rows, columns).svg();
}

}  // namespace flashlight::mosaic
