#include "flashlight/mosaic/draw.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "composit/io/drawing/text.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/kernels/forms.h"

namespace flashlight::mosaic {
namespace {

using composit::drawing::html;

constexpr const char* kDark = "#24292f";
constexpr const char* kFont = "Helvetica,Arial,sans-serif";

// Colours of equal lightness; those of neighbouring numbers differ much.
std::string colour(size_t number) {
  const double hue = std::fmod(static_cast<double>(number) * 137.508 + 205, 360);
  const auto part = [&](double shift) {
    const double k = std::fmod(shift + hue / 30, 12);
    return static_cast<int>(255 * (0.82 - 0.12 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}))));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(8), part(4));
}

// A number per place in the arena.
std::map<int64_t, size_t> places(const Plan& plan, const std::vector<Buffer>& buffers) {
  std::map<int64_t, size_t> numbers;
  for (const Buffer& one : buffers) numbers.emplace(plan.offsets[one.values[0]], 0);
  size_t next = 0;
  for (auto& [offset, number] : numbers) number = next++;
  return numbers;
}

std::string size_text(int64_t bytes) {
  return bytes >= 100000 ? fmt::format("{:.2f} MB", static_cast<double>(bytes) * 1e-6)
                         : fmt::format("{:.2f} kB", static_cast<double>(bytes) * 1e-3);
}

std::string module_of(const Plan& plan, const Kernel& kernel) {
  return kernel.steps.empty() ? ""
                              : loops::origin_of(plan.routine.steps[kernel.steps.back()]).module;
}

// A module per kernel, as deep as leaves at most `most` runs of equal ones; what has no module
// belongs to the kernel before it.
std::vector<std::string> sections(const Plan& plan, size_t most) {
  std::vector<std::string> best(plan.run.size());
  for (size_t depth = 1; depth < 8; ++depth) {
    std::vector<std::string> now;
    size_t runs = 0;
    for (const Kernel& kernel : plan.run) {
      std::string module = module_of(plan, kernel);
      size_t end = 0;
      for (size_t i = 0; i < depth && end != std::string::npos; ++i)
        end = module.find('.', i == 0 ? 0 : end + 1);
      module = module.substr(0, end);
      if (module.empty() && !now.empty()) module = now.back();
      runs += now.empty() || now.back() != module;
      now.push_back(module);
    }
    if (runs > most) break;
    best = now;
  }
  return best;
}

// ---- the arena ----------------------------------------------------------------------------------

class ArenaPicture {
 public:
  explicit ArenaPicture(const Plan& plan)
      : plan_(plan), buffers_(buffers_of(plan)), names_(value_names(plan.routine)) {
    kernels_ = static_cast<double>(std::max<size_t>(plan.run.size(), 1));
    bytes_ = static_cast<double>(std::max<int64_t>(plan.arena_bytes, 1));
    width_ = std::clamp(kernels_ * 16, 900.0, 3200.0);
    find_modules();
  }

  std::string run() {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"{2}\" font-size=\"11\" fill=\"{3}\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width_ + left_ + kRight, kHeight + kTop + bottom_, kFont, kDark);
    title();
    for (const Module& one : modules_) module(one);
    grid();
    const auto numbers = places(plan_, buffers_);
    for (const Buffer& one : buffers_) boxes(one, numbers.at(plan_.offsets[one.values[0]]));
    alive();
    bound();
    return text_ + labels_ + "</svg>\n";
  }

 private:
  static constexpr double kRight = 20, kTop = 44, kHeight = 520;
  static constexpr double kSlope = 38;  // degrees, of the names of modules

  // Kernels of one part of the model.
  struct Module {
    size_t begin, end;
    std::string name;  // empty where there is no room for it
    bool is_grey;
  };

  double x(double kernel) const { return left_ + kernel / kernels_ * width_; }
  double y(double bytes) const { return kTop + kHeight * (1 - bytes / bytes_); }

  void title() {
    text_ += fmt::format(
        "<text x=\"{}\" y=\"26\" font-size=\"15\">{}: arena of {}, at least {}; {} of values in "
        "{} kernels</text>\n",
        left_, html(plan_.name), size_text(plan_.arena_bytes), size_text(plan_.least_bytes),
        size_text(plan_.sum_bytes), plan_.run.size());
  }

  // Their names end below their kernels, and make room for themselves on the left and below.
  void find_modules() {
    constexpr double kApart = 17, kLetter = 6.4, kRadian = 3.14159265358979 / 180;
    const std::vector<std::string> list = sections(plan_, 40);
    double last = -kApart;
    for (size_t begin = 0, end = 0; begin < list.size(); begin = end) {
      while (end < list.size() && list[end] == list[begin]) ++end;
      modules_.push_back({begin, end, "", modules_.size() % 2 == 0});
      const double middle = below(modules_.back()) - left_;
      if (middle - last < kApart) continue;
      last = middle;
      modules_.back().name = list[begin];
      const double length = kLetter * static_cast<double>(list[begin].size());
      bottom_ = std::max(bottom_, 34 + length * std::sin(kSlope * kRadian));
      left_ = std::max(left_, length * std::cos(kSlope * kRadian) - middle);
    }
  }
  double below(const Module& one) const {
    return x(static_cast<double>(one.begin + one.end) / 2) + 4;
  }
  void module(const Module& one) {
    const double left = x(static_cast<double>(one.begin));
    if (one.is_grey)
      text_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#f6f8fa\"/>\n", left,
          kTop, x(static_cast<double>(one.end)) - left, kHeight);
    if (one.name.empty()) return;
    text_ += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1}\" text-anchor=\"end\" transform=\"rotate(-{2} {0:.1f} {1})\" "
        "font-size=\"10\">{3}</text>\n",
        below(one), kTop + kHeight + 22, kSlope, html(one.name));
  }

  void grid() {
    const double step = round_step(bytes_ / 6);
    for (double at = 0; at <= bytes_; at += step)
      text_ += fmt::format(
          "<line x1=\"{0}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#d0d7de\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          left_, left_ + width_, y(at), left_ - 6, y(at) + 4,
          at == 0 ? "0" : size_text(static_cast<int64_t>(at)));
    const double kernels = std::max(1.0, round_step(kernels_ / 12));
    for (double at = 0; at < kernels_; at += kernels)
      text_ += fmt::format(
          "<text x=\"{:.1f}\" y=\"{}\" font-size=\"9\" fill=\"#57606a\">{:.0f}</text>\n", x(at),
          kTop + kHeight + 11, at);
  }
  // 1, 2 or 5 times a power of ten.
  static double round_step(double about) {
    const double power = std::pow(10, std::floor(std::log10(about)));
    return power * (about / power < 2 ? 1 : about / power < 5 ? 2 : 5);
  }

  // A box per value: those that are written over each other stand side by side.
  void boxes(const Buffer& one, size_t place) {
    const auto offset = static_cast<double>(plan_.offsets[one.values[0]]),
               bytes = static_cast<double>(one.life.bytes);
    std::vector<size_t> starts = one.starts;
    starts.push_back(one.life.last + 1);
    for (size_t i = 0; i < one.values.size(); ++i) {
      const double left = x(static_cast<double>(starts[i])),
                   right = x(static_cast<double>(starts[i + 1]));
      const std::string& name = names_[one.values[i]];
      text_ += fmt::format(
          "<g><title>{} {}, at {}, kernels {} to {}{}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" "
          "width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"white\" stroke-width=\"0.6\"/>",
          html(name), size_text(one.life.bytes), plan_.offsets[one.values[0]], starts[i],
          starts[i + 1] - 1, i == 0 ? "" : ", in place", left, y(offset + bytes), right - left,
          bytes / bytes_ * kHeight, colour(place));
      const double height = bytes / bytes_ * kHeight;
      const auto fits = static_cast<size_t>((right - left - 6) / 5.4);
      if (height > 11 && fits >= std::min<size_t>(name.size(), 7))
        labels_ += fmt::format(
            "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9.5\" pointer-events=\"none\" "
            "stroke=\"{}\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>\n",
            left + 3, y(offset + bytes / 2) + 3.5, colour(place), html(ending(name, fits)));
      text_ += "</g>\n";
    }
  }
  static std::string ending(const std::string& name, size_t length) {
    return name.size() <= length ? name : ".." + name.substr(name.size() - length + 2);
  }

  void alive() {
    std::vector<int64_t> bytes(plan_.run.size(), 0);
    for (const Buffer& one : buffers_)
      for (size_t kernel = one.life.first; kernel <= one.life.last; ++kernel)
        bytes[kernel] += one.life.bytes;
    std::string points;
    for (size_t kernel = 0; kernel < bytes.size(); ++kernel)
      for (const size_t end : {kernel, kernel + 1})
        points += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(end)),
                              y(static_cast<double>(bytes[kernel])));
    text_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\"/>\n",
                    points, kDark);
  }
  void bound() {
    const double at = y(static_cast<double>(plan_.least_bytes));
    text_ += fmt::format(
        "<line x1=\"{}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#cf222e\" "
        "stroke-dasharray=\"6 4\"/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" "
        "fill=\"#cf222e\">at least {}; line: alive</text>\n",
        left_, left_ + width_, at, at, left_ + width_, at - 4, size_text(plan_.least_bytes));
  }

  const Plan& plan_;
  const std::vector<Buffer> buffers_;
  const std::vector<std::string> names_;
  double kernels_ = 1, bytes_ = 1, width_ = 0, left_ = 70, bottom_ = 40;
  std::vector<Module> modules_;
  std::string text_, labels_;  // labels of boxes go on top of the line
};

// ---- kernels ------------------------------------------------------------------------------------

class KernelPicture {
 public:
  explicit KernelPicture(const Plan& plan)
      : plan_(plan),
        names_(value_names(plan.routine)),
        places_(places(plan, buffers_of(plan))),
        sections_(sections(plan, 60)) {}

  std::string run() {
    text_ = fmt::format(
        "digraph plan {{\n  graph [fontname=\"{0}\", fontsize=11, fontcolor=\"{1}\", "
        "bgcolor=white, pad=0.3, nodesep=0.25, ranksep=0.35, labeljust=l];\n"
        "  node [shape=box, style=\"rounded,filled\", fontname=\"{0}\", fontsize=12, "
        "fontcolor=\"{1}\", color=\"#8c959f\", margin=\"0.1,0.05\", height=0.3];\n"
        "  edge [fontname=\"{0}\", fontsize=9, fontcolor=\"#57606a\", arrowsize=0.6];\n",
        kFont, kDark);
    for (size_t begin = 0, end = 0; begin < plan_.run.size(); begin = end) {
      while (end < plan_.run.size() && sections_[end] == sections_[begin]) ++end;
      section(begin, end);
    }
    for (size_t i = 0; i < plan_.run.size(); ++i) edges(i);
    return text_ + "}\n";
  }

 private:
  std::string colour_of(ValueId value) const {
    const bool placed = plan_.homes[value] == Home::arena && places_.contains(plan_.offsets[value]);
    return placed ? colour(places_.at(plan_.offsets[value])) : "#f6f8fa";
  }
  void section(size_t begin, size_t end) {
    const bool boxed = !sections_[begin].empty();
    if (boxed)
      text_ +=
          fmt::format("  subgraph cluster_{} {{ label=\"{}\"; color=\"#d0d7de\"; style=rounded;\n",
                      begin, html(sections_[begin]));
    for (size_t i = begin; i < end; ++i) node(i);
    if (boxed) text_ += "  }\n";
  }
  // Zeros around a value belong to the kernel that writes it.
  void node(size_t number) {
    const Kernel& kernel = plan_.run[number];
    const KernelText text = kernel.form->write(plan_, kernel);
    if (!text.function) return;
    const ValueIds results = written(plan_, kernel);
    std::string label = text.name;
    const Description one = describe(plan_, kernel, names_);
    if (one.operations.size() > 1) label += "\\n" + wrapped(names_of(one.operations));
    for (const ValueId value : results) {
      if (const auto layout = plan_.layouts.find(value);
          layout != plan_.layouts.end() && has_border(layout->second))
        label += "\\n" + fill_name(layout->second) + " around " + names_[value];
      if (plan_.in_place.contains(value)) label += "\\nover " + names_[plan_.in_place.at(value)];
    }
    text_ += fmt::format("    k{} [label=\"{} {}\", fillcolor=\"{}\", tooltip=\"{}\"];\n", number,
                         number, label, results.empty() ? "#ffffff" : colour_of(results[0]),
                         html(one.loops));
  }
  static std::string wrapped(const std::string& text) {
    constexpr size_t kMost = 48;
    return text.size() <= kMost ? text : text.substr(0, kMost - 2) + "..";
  }

  // From who wrote what the kernel touches last.
  void edges(size_t number) {
    const Kernel& kernel = plan_.run[number];
    if (kernel.form == &kBorder) return;
    const ValueIds results = written(plan_, kernel);
    std::set<ValueId> seen;
    for (const ValueId value : touched(plan_, kernel)) {
      const auto writer = writers_.find(value);
      if (writer == writers_.end() || writer->second == number || !seen.insert(value).second)
        continue;
      text_ += fmt::format(
          "  k{} -> k{} [label=\" {}\", color=\"{}\", penwidth=2.5, tooltip=\"{} at {}\"];\n",
          writer->second, number, size_text(plan_.routine.values[value].type.nbytes()),
          colour_of(value), names_[value], plan_.offsets[value]);
    }
    for (const ValueId value : results) writers_[value] = number;
  }

  const Plan& plan_;
  const std::vector<std::string> names_;
  const std::map<int64_t, size_t> places_;
  const std::vector<std::string> sections_;
  std::map<ValueId, size_t> writers_;  // the last kernel that wrote it
  std::string text_;
};

}  // namespace

std::string arena_svg(const Plan& plan) { return ArenaPicture(plan).run(); }

std::string kernels_dot(const Plan& plan) { return KernelPicture(plan).run(); }

}  // namespace flashlight::mosaic
