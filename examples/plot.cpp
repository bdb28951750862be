#include "examples/plot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "composit/ir/error.h"

namespace examples {
namespace {

constexpr double kWidth = 560, kHeight = 360, kLeft = 56, kRight = 16, kTop = 34, kBottom = 46;
// Okabe and Ito's colours, which people who do not tell red from green can tell apart.
constexpr std::array<const char*, 6> kColors = {"#0072B2", "#D55E00", "#009E73",
                                                "#CC79A7", "#E69F00", "#56B4E9"};

// 1, 2 or 5 times a power of ten: about five steps in `range`.
double step_of(double range) {
  constexpr double kSteps = 5;
  const double power = std::pow(10, std::floor(std::log10(range / kSteps)));
  const double rest = range / kSteps / power;
  return power * (rest < 2 ? (rest < 1.5 ? 1 : 2) : rest < 4 ? 4 : rest < 7 ? 5 : 10);
}

std::string number(double value, double step) {
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  return fmt::format("{:.{}f}", std::abs(value) < step / 1000 ? 0.0 : value, digits);
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& style = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, style, escaped(text));
}

}  // namespace

// From coordinates of the data to those of the picture.
struct Plot::Frame {
  double low_x, high_x, low_y, high_y;

  double x(double value) const {
    return kLeft + (value - low_x) / (high_x - low_x) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - (value - low_y) / (high_y - low_y) * (kHeight - kTop - kBottom);
  }

  static Frame of(const std::vector<Series>& all, bool keep_aspect) {
    Frame frame = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (const Series& one : all) {
      for (const double x : one.x)
        frame.low_x = std::min(frame.low_x, x), frame.high_x = std::max(frame.high_x, x);
      for (const double y : one.y)
        frame.low_y = std::min(frame.low_y, y), frame.high_y = std::max(frame.high_y, y);
    }
    if (!(frame.low_x <= frame.high_x)) frame = {0, 1, 0, 1};
    const auto widen = [](double& low, double& high, double by) {
      if (low == high) by += std::max(1.0, std::abs(low));
      low -= by;
      high += by;
    };
    constexpr double kMargin = 0.04;
    widen(frame.low_x, frame.high_x, 0);
    widen(frame.low_y, frame.high_y, kMargin * (frame.high_y - frame.low_y));
    if (!keep_aspect) return frame;
    const double wide = (frame.high_x - frame.low_x) / (kWidth - kLeft - kRight),
                 high = (frame.high_y - frame.low_y) / (kHeight - kTop - kBottom);
    if (wide < high)
      widen(frame.low_x, frame.high_x, (high / wide - 1) / 2 * (frame.high_x - frame.low_x));
    else
      widen(frame.low_y, frame.high_y, (wide / high - 1) / 2 * (frame.high_y - frame.low_y));
    return frame;
  }

  std::string grid() const {
    std::string text;
    const double step_x = step_of(high_x - low_x), step_y = step_of(high_y - low_y);
    for (double at = std::ceil(low_x / step_x) * step_x; at <= high_x; at += step_x) {
      text += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#ddd\"/>\n", x(at), kTop,
                          kHeight - kBottom);
      text += text_at(x(at), kHeight - kBottom + 16, "middle", number(at, step_x));
    }
    for (double at = std::ceil(low_y / step_y) * step_y; at <= high_y; at += step_y) {
      text += fmt::format("<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#ddd\"/>\n", kLeft, y(at),
                          kWidth - kRight);
      text += text_at(kLeft - 6, y(at) + 4, "end", number(at, step_y));
    }
    return text;
  }
};

Plot::Plot(std::string title, std::string x_label)
    : title_(std::move(title)), x_label_(std::move(x_label)) {}

void Plot::add(Series series) {
  if (series.x.size() != series.y.size())
    throw composit::UserError(fmt::format("[plot] '{}': expected a y for each of {} x, received {}",
                                          series.name, series.x.size(), series.y.size()));
  for (size_t i = 0; i < series.x.size(); ++i)
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i]))
      throw composit::UserError(fmt::format("[plot] '{}': point {} is ({}, {})", series.name, i,
                                            series.x[i], series.y[i]));
  series_.push_back(std::move(series));
}

void Plot::line(std::string name, std::vector<double> x, std::vector<double> y) {
  add({std::move(name), std::move(x), std::move(y), true});
}

void Plot::points(std::string name, std::vector<double> x, std::vector<double> y) {
  add({std::move(name), std::move(x), std::move(y), false});
}

std::string Plot::svg() const {
  const Frame frame = Frame::of(series_, keep_aspect_);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  text += text_at(kWidth / 2, 20, "middle", title_, " font-size=\"15\"");
  text += text_at(kWidth / 2, kHeight - 10, "middle", x_label_);
  text += frame.grid();
  size_t named = 0;
  for (const Series& one : series_) {
    named += one.name.empty() ? 0 : 1;
    const std::string color = kColors[(named + kColors.size() - 1) % kColors.size()];
    std::string path;
    for (size_t p = 0; p < one.x.size(); ++p) {
      const double x = frame.x(one.x[p]), y = frame.y(one.y[p]);
      path += one.is_line ? fmt::format("{}{:.1f} {:.1f}", p == 0 ? "M" : "L", x, y)
                          : fmt::format("M{:.1f} {:.1f}h0", x, y);
    }
    text += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
        "stroke-linecap=\"round\"/>\n",
        path, color, one.is_line ? 2 : 4);
    if (one.name.empty()) continue;
    const double row = kTop + 16 * static_cast<double>(named);
    text += fmt::format(
        "<path d=\"M{:.1f} {:.1f}h{}\" stroke=\"{}\" stroke-width=\"{}\" "
        "stroke-linecap=\"round\"/>\n",
        kLeft + 10, row - 4, one.is_line ? 18 : 0, color, one.is_line ? 2 : 5);
    text += text_at(kLeft + 34, row, "start", one.name,
                    " paint-order=\"stroke\" stroke=\"white\" stroke-width=\"4\"");
  }
  return text + "</svg>\n";
}

void Plot::save(const std::filesystem::path& file) const {
  std::ofstream stream(file);
  stream << svg();
  if (!stream.flush()) throw composit::UserError("[plot] cannot write " + file.string());
}

}  // namespace examples
