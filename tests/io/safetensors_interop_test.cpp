// Files go to Python's safetensors package and back.

#include <gtest/gtest.h>

#include <complex>

#include "composit/io/safetensors.h"
#include "tests/io/arrays.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

bool python_has_safetensors() {
  return run({FLASHLIGHT_PYTHON, "-c", "import torch, safetensors"}).status == 0;
}

template <class T>
Array counting(DType dtype, const Dims& sizes) {
  std::vector<T> values(static_cast<size_t>(tensor_type(dtype, sizes).numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i);
  return array_of(dtype, sizes, values);
}

TEST(safetensors_interop, python_reads_what_we_write_and_we_what_python_writes) {
  if (!python_has_safetensors()) GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no safetensors";
  Safetensors contents;
  contents.metadata = {{"format", "pt"}, {"note", "ü \"quoted\""}};
  auto& tensors = contents.tensors;
  for (const Dims& sizes :
       {Dims{}, Dims{1}, Dims{2, 3}, Dims{3, 0}, Dims{25}, Dims{5, 5, 5}, Dims{16, 16}}) {
    std::string shape;
    for (int64_t size : sizes) shape += "/" + std::to_string(size);
    tensors.emplace("uint8" + shape, counting<uint8_t>(DType::uint8, sizes));
    tensors.emplace("int16" + shape, counting<int16_t>(DType::int16, sizes));
    tensors.emplace("int64" + shape, counting<int64_t>(DType::int64, sizes));
    tensors.emplace("uint32" + shape, counting<uint32_t>(DType::uint32, sizes));
    tensors.emplace("float32" + shape, counting<float>(DType::float32, sizes));
    tensors.emplace("float64" + shape, counting<double>(DType::float64, sizes));
    tensors.emplace("complex64" + shape, counting<std::complex<float>>(DType::complex64, sizes));
    tensors.emplace("bytes" + shape, counting_bytes(DType::qint32, sizes));
  }
  tensors.emplace("bool", counting_bytes(DType::bool_, {2}));
  tensors.emplace("float32/strided", stored_transposed(counting<float>(DType::float32, {3, 4})));

  const TemporaryFolder folder;
  write_safetensors(contents, folder / "ours.safetensors");
  const CommandResult result =
      run({FLASHLIGHT_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/io/safetensors_interop.py",
           (folder / "ours.safetensors").string(), (folder / "theirs.safetensors").string()});
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* shape : {"float32: ", "float32/2/3:2x3 ", "float32/3/0:3x0 ",
                            "float32/strided:3x4 ", "bytes/25:25x4 "})
    EXPECT_NE(result.output.find(shape), std::string::npos) << result.output;

  const Safetensors theirs = read_safetensors(folder / "theirs.safetensors");
  EXPECT_EQ(theirs.metadata, contents.metadata);
  EXPECT_EQ(theirs.tensors.size(), contents.tensors.size());
  for (const auto& [name, array] : contents.tensors)
    EXPECT_EQ(theirs.tensors.at(name), array.contiguous()) << name;
}

}  // namespace
}  // namespace composit::test
