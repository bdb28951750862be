// Archives that other programs read.
#include <gtest/gtest.h>

#include <string>

#include "composit/io/file.h"
#include "composit/io/zip_write.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

TEST(zip, crc_is_the_one_of_the_format) {
  EXPECT_EQ(io::crc32("123456789", 9), 0xCBF43926u);  // the check value of CRC-32/ISO-HDLC
  EXPECT_EQ(io::crc32("", 0), 0u);
  const std::string text = "a longer text whose length is not a multiple of eight.";
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(io::crc32(text.data() + cut, text.size() - cut, io::crc32(text.data(), cut)),
              io::crc32(text.data(), text.size()));
}

TEST(zip, python_finds_what_was_written) {
  const TemporaryFolder folder;
  const auto path = folder / "a.zip";
  {
    io::OutputFile file(path);
    io::ZipWriter archive([&](const void* data, size_t size) { file.write(data, size); });
    archive.add("root/empty", "");
    archive.add("root/text", "hello");
    const std::string piece(1000, 'x');
    archive.begin("root/ü", 3000);
    for (int i = 0; i < 3; ++i) archive.write(piece.data(), piece.size());
    for (int i = 0; i < 70'000; ++i) archive.add("many/" + std::to_string(i), "");  // zip64's count
    archive.finish();
    file.commit();
  }
  const std::string script =
      "import sys, zipfile\n"
      "z = zipfile.ZipFile(sys.argv[1])\n"
      "assert z.testzip() is None\n"
      "assert len(z.namelist()) == 70003, len(z.namelist())\n"
      "assert z.read('root/empty') == b'' and z.read('root/text') == b'hello'\n"
      "assert z.read('root/ü') == b'x' * 3000\n"
      "data = open(sys.argv[1], 'rb').read()\n"
      "for i in z.infolist()[:5]:\n"
      "    begin = i.header_offset + 30 + sum(int.from_bytes(data[i.header_offset + k:][:2], "
      "'little') for k in (26, 28))\n"
      "    assert begin % 64 == 0, begin\n";
  const CommandResult result = run({FLASHLIGHT_SYSTEM_PYTHON, "-c", script, path.string()});
  EXPECT_EQ(result.status, 0) << result.output;
}

}  // namespace
}  // namespace composit::test
