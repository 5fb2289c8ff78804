// TOML as a tree whose values know their place.

#include <string>

#include <gtest/gtest.h>

#include <strata/config/toml.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::config;
using strata::Errc;

TEST(Toml, ValuesKeepTheirOrderTheirPlaceAndTheirKind) {
    const Document document = parse_toml(
        "# a comment\nzebra = 0.5\napple = \"text\"\ncount = 1_000\non = true\nlist = [1, 2]\nday = 2024-01-02\n[table]\nkey = 'x'\n",
        "config.toml");
    const auto& members = document.root.members();
    ASSERT_EQ(members.size(), 7U);
    EXPECT_EQ(members[0].key, "zebra");
    EXPECT_EQ(members[1].key, "apple");
    EXPECT_EQ(members[0].value.number(), 0.5);
    EXPECT_EQ(members[0].value.place(), "config.toml:2:9");
    EXPECT_EQ(members[2].value.whole(), 1000);
    EXPECT_TRUE(members[3].value.is(NodeKind::flag));
    EXPECT_EQ(members[4].value.elements().size(), 2U);
    EXPECT_EQ(members[5].value.scalar(), "2024-01-02");
    EXPECT_EQ(document.root.at("table.key")->scalar(), "x");
}

TEST(Toml, WhatIsNoTomlNamesLineAndColumnAndNoLibrary) {
    for (const char* bad : {"a = \n", "a = 1\na = 2\n", "a = 'x\n", "[t\n", "= 1\n", "a = nope\n"}) {
        const auto error = strata_test::thrown_by([&] { (void)parse_toml(bad, "config.toml"); });
        EXPECT_EQ(error.code, Errc::unreadable_config) << bad;
        EXPECT_TRUE(error.says("config.toml:")) << error.message;
        EXPECT_TRUE(error.says("is no TOML")) << error.message;
        EXPECT_EQ(error.message.find("toml++"), std::string::npos);
    }
    EXPECT_TRUE(strata_test::thrown_by([] { (void)parse_toml("a = 1\nb == 2\n", "f.toml"); }).says("f.toml:2:"));
}

}  // namespace
