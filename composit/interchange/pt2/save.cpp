#include <algorithm>

#include "composit/family/saved_family.h"
#include "composit/interchange/pt2/archive.h"
#include "composit/interchange/pt2/pickle.h"
#include "composit/io/file.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

namespace fs = std::filesystem;
using io::ZipWriter;
using pt2::Exported;
using pt2::Json;

// What tools that run the program take as examples: empty, where the capture has none.
std::string sample_inputs(const Exported& exported) {
  std::string bytes;
  if (exported.examples.empty()) return bytes;
  ZipWriter archive(
      [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  archive.add("archive/data.pkl", pt2::pickle_of(exported.arguments, exported.examples));
  archive.add("archive/byteorder", "little");
  for (size_t i = 0; i < exported.examples.size(); ++i) {
    const Array array = exported.examples[i].contiguous();
    archive.add("archive/data/" + std::to_string(i), {reinterpret_cast<const char*>(array.data()),
                                                      static_cast<size_t>(array.type().nbytes())});
  }
  archive.add("archive/version", "3\n");
  archive.finish();
  return bytes;
}

void write(const Exported& exported, const fs::path& file) {
  const std::string program = exported.program.dump();
  const std::string examples = sample_inputs(exported);
  Progress progress("writing " + file.string(),
                    exported.weights.bytes() + exported.constants.bytes());
  io::OutputFile output(file);
  ZipWriter archive([&](const void* data, size_t size) { output.write(data, size); });
  const std::string root = file.stem().string();
  archive.add(root + "/archive_format", "pt2");
  archive.add(root + "/archive_version", "0");
  archive.add(root + "/.data/version", "6\n");
  archive.add(root + "/byteorder", "little");
  archive.add(root + "/models/" + pt2::kModel + ".json", program);
  exported.weights.write(root, std::string(pt2::kModel) + "_weights_config.json", archive,
                         progress);
  exported.constants.write(root, std::string(pt2::kModel) + "_constants_config.json", archive,
                           progress);
  archive.add(root + "/data/sample_inputs/" + pt2::kModel + ".pt", examples);
  archive.finish();
  output.sync();
  output.commit();
}

void expect_fixed_numbers(const SavedCapture& capture) {
  if (!is_family(capture) && capture.properties.contains("next call"))  // one's are inputs
    throw UserError(
        "its numbers follow its calls (an optimizer's step count), which a file of torch.export "
        "cannot count");
}

}  // namespace

void save_pt2(const SavedCapture& capture, const fs::path& file, const Pt2Options& options) {
  try {
    expect_fixed_numbers(capture);
    write(pt2::exported(capture, options), file);
  } catch (const UserError& error) {
    throw UserError("[pt2] " + file.string() + ": " + error.what());
  } catch (const Json::type_error& error) {  // text that is not UTF-8
    throw UserError("[pt2] " + file.string() + ": " + error.what());
  }
}

}  // namespace composit
