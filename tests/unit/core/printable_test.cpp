// Text of a stranger on a terminal: nothing in it is obeyed, everything in it is seen.

#include <string>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>

namespace {

using strata::core::printable;

TEST(Printable, TextOfEveryLanguageStaysAsItIs) {
    for (const char* text : {"", "a cat.png",
                             "Stra\xc3\x9f"
                             "e \xc3\xbc"
                             "ber",
                             "\xe7\x8c\xab", "\xf0\x9f\x90\x88", "a\\b"})
        EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatATerminalObeysIsShown) {
    EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
    EXPECT_EQ(printable("one\ntwo\rthree\tfour"), "one\\ntwo\\rthree\\tfour");
    EXPECT_EQ(printable(std::string{"a\0b\x7f", 4}), "a\\x00b\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"
                        "2J"),
              "\\u009b2J")
        << "a control sequence in two bytes";
    EXPECT_EQ(printable("a\xe2\x80\xa8"
                        "b"),
              "a\\u2028b")
        << "a line separator";
}

TEST(Printable, TextThatIsTurnedAroundIsShownInItsOrder) {
    EXPECT_EQ(printable("cat\xe2\x80\xaegnp.exe"), "cat\\u202egnp.exe");
    EXPECT_EQ(printable("\xe2\x80\xaa"
                        "a\xe2\x80\xac\xe2\x81\xa6"
                        "b\xe2\x81\xa9"),
              "\\u202aa\\u202c\\u2066b\\u2069");
}

TEST(Printable, BytesThatAreNoUtf8AreShownOneByOne) {
    EXPECT_EQ(printable("a\xff\xfe"
                        "b"),
              "a\\xff\\xfeb");
    EXPECT_EQ(printable("caf\xe9"), "caf\\xe9") << "Latin-1, cut at the end";
    EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut inside of a character";
    EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
    EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
    EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80") << "beyond the last character";
    EXPECT_EQ(printable("\x9b"
                        "2J"),
              "\\x9b2J")
        << "a control sequence of Latin-1";
}

TEST(Printable, DoneTwiceIsDoneOnce) {
    const std::string all = "\x1b[31m\n\xff\xe2\x80\xae\\";
    EXPECT_EQ(printable(printable(all)), printable(all));
}

TEST(Printable, AnErrorShowsTheNameThatItIsAbout) {
    const strata::Error error{strata::Errc::not_found, "no file 'a\x1b[2J\nb'", "make\rit"};
    EXPECT_STREQ(error.what(), "[ST2002] no file 'a\\x1b[2J\\nb'. Fix: make\\rit.");
    EXPECT_EQ(error.problem(), "no file 'a\\x1b[2J\\nb'");
    EXPECT_EQ(error.fix(), "make\\rit");
}

}  // namespace
