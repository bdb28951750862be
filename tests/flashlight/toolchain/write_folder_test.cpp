// Writing sources as a folder, again and again, without losing anybody's work.

#include "flashlight/toolchain/write_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/temporary_folder.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::test::message_of;
using composit::test::read_file;
using composit::test::TemporaryFolder;
using composit::test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<SourceFile> kFiles = {{"model.cpp", "int f();\n"}, {"include/model.h", "\n"}};

TEST(write_folder, writes_and_replaces_what_it_wrote) {
  const TemporaryFolder folder;
  const auto write_weights = [](const fs::path& there) { write_file(there / "weights", "bytes"); };
  write_folder(kFiles, folder / "out", write_weights);
  EXPECT_THAT(folder.list(), ElementsAre("out", "out/flashlight_files.txt", "out/include",
                                         "out/include/model.h", "out/model.cpp", "out/weights"));
  EXPECT_EQ(read_file(folder / "out/model.cpp"), "int f();\n");
  write_folder({{"other.cpp", "int g();\n"}}, folder / "out");
  EXPECT_THAT(folder.list(), ElementsAre("out", "out/flashlight_files.txt", "out/other.cpp"));
}

TEST(write_folder, keeps_what_others_wrote) {
  const TemporaryFolder folder;
  const auto message = [&] { return message_of([&] { write_folder(kFiles, folder / "out"); }); };
  fs::create_directory(folder / "out");
  write_folder(kFiles, folder / "out");  // an empty folder has nothing to lose

  write_file(folder / "out/model.cpp", "int g();\n");
  EXPECT_EQ(message(),
            "[write] " + (folder / "out").string() +
                ": 'model.cpp' in it was changed since it was written, and would be lost");
  write_file(folder / "out/model.cpp", "int f();\n");

  write_file(folder / "out/include/mine.h", "");
  EXPECT_THAT(message(), HasSubstr("'include/mine.h' in it was not written by Flashlight"));
  fs::remove(folder / "out/include/mine.h");
  EXPECT_NO_THROW(write_folder(kFiles, folder / "out"));

  fs::create_directory_symlink(folder.path(), folder / "out/link");
  EXPECT_THAT(message(), HasSubstr("out/link"));
  fs::remove(folder / "out/link");

  fs::remove(folder / "out/flashlight_files.txt");
  EXPECT_THAT(message(), HasSubstr("a folder of this name that Flashlight did not write"));
  EXPECT_EQ(read_file(folder / "out/model.cpp"), "int f();\n");

  fs::remove_all(folder / "out");
  write_file(folder / "out", "text");
  EXPECT_THAT(message(), HasSubstr("there is a file of this name"));
}

TEST(write_folder, is_all_or_nothing) {
  const TemporaryFolder folder;
  const auto fail = [](const fs::path&) { throw composit::UserError("no weights"); };
  EXPECT_THAT(message_of([&] { write_folder(kFiles, folder / "out", fail); }),
              HasSubstr("no weights"));
  EXPECT_THAT(folder.list(), IsEmpty());
  write_folder(kFiles, folder / "out");
  const auto before = folder.list();
  EXPECT_THROW(write_folder({}, folder / "out", fail), composit::UserError);
  EXPECT_EQ(folder.list(), before);
  EXPECT_THAT(message_of([&] {
                write_folder({{"../a.cpp", ""}}, folder / "new");
              }),
              StartsWith("[write] "));
}

TEST(write_folder, makes_the_folders_around_it) {
  const TemporaryFolder folder;
  const auto fail = [](const fs::path&) { throw composit::UserError("no weights"); };
  EXPECT_THROW(write_folder(kFiles, folder / "missing/new", fail), composit::UserError);
  EXPECT_THAT(folder.list(), IsEmpty());
  write_folder(kFiles, folder / "missing/new");
  EXPECT_TRUE(fs::is_directory(folder / "missing/new"));
}

}  // namespace
}  // namespace flashlight::toolchain
