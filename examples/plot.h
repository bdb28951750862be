// Line and point plots as SVG.
//
//   Plot plot("relu3", "x");
//   plot.line("relu3(x)", x, y);
//   plot.points("data", x, z);
//   plot.save("relu3.svg");
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace examples {

class Plot {
 public:
  Plot(std::string title, std::string x_label);

  // One y per x. Without a name, it is a part of the one before. UserError where there are more of
  // one, or a number is not finite.
  void line(std::string name, std::vector<double> x, std::vector<double> y);
  void points(std::string name, std::vector<double> x, std::vector<double> y);
  // The same length for a unit along both axes.
  void keep_aspect() { keep_aspect_ = true; }

  std::string svg() const;
  void save(const std::filesystem::path& file) const;

 private:
  struct Series {
    std::string name;
    std::vector<double> x, y;
    bool is_line;
  };
  struct Frame;  // what is drawn where
  void add(Series series);

  std::string title_, x_label_;
  std::vector<Series> series_;
  bool keep_aspect_ = false;
};

}  // namespace examples
