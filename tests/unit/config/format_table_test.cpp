#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>

namespace {

using namespace strata::config;

const FormatTable* const tables[] = {&deepspeed_table(), &accelerate_table()};

std::string text_of(const std::string& file) {
    std::ifstream stream{file};
    return {std::istreambuf_iterator<char>{stream}, {}};
}

TEST(FormatTable, EveryKeySaysWhatBecomesOfIt) {
    for (const FormatTable* table : tables) {
        std::set<std::string> paths;
        for (const KeyRow& row : table->rows()) {
            EXPECT_TRUE(paths.insert(row.path).second) << row.path << " stands twice";
            EXPECT_TRUE(row.parent().empty() || table->find(row.parent()) != nullptr)
                << row.path << " stands in nothing";
            if (!row.renamed.empty()) {
                ASSERT_NE(table->find(row.renamed), nullptr) << row.path;
                continue;
            }
            if (row.kind == ValueKind::object) continue;
            EXPECT_NE(row.effect == Effect::none ? table->why(row) : row.to, "") << row.path;
            EXPECT_FALSE(table->why(row).ends_with('.')) << row.path;
        }
    }
}

TEST(FormatTable, PagesAreWhatTheTablesSay) {
    for (const FormatTable* table : tables) {
        const std::string page = std::string{STRATA_SOURCE_DIR} + "/" + table->page();
        std::string text = text_of(page);
        const std::string mark =
            "<!-- What follows is printed by the table that the reader uses; unit/config/format_table holds it to that. -->\n";
        const std::size_t begin = text.find(mark);
        ASSERT_NE(begin, std::string::npos) << page;
        const std::string wanted = text.substr(0, begin) + mark + "\n" + markdown(*table);
        if (std::getenv("STRATA_WRITE_PAGES") != nullptr) {
            std::ofstream{page} << wanted;
            text = wanted;
        }
        EXPECT_TRUE(text == wanted) << page
                                    << " is not what its table says: run this test once with STRATA_WRITE_PAGES=1";
    }
}

TEST(FormatTable, TheSchemaOfEditorsHasEveryKey) {
    for (const FormatTable* table : tables) {
        const auto schema = nlohmann::json::parse(json_schema(*table));
        for (const KeyRow& row : table->rows()) {
            const nlohmann::json* at = &schema;
            std::string_view rest = row.path;
            while (!rest.empty()) {
                const std::string part{rest.substr(0, rest.find('.'))};
                rest.remove_prefix(std::min(rest.size(), part.size() + 1));
                if (at->contains("anyOf")) at = &at->at("anyOf")[0];
                at = part == "*" ? &at->at("additionalProperties") : &at->at("properties").at(part);
            }
            EXPECT_NE(at->at("description").get<std::string>(), "") << row.path;
        }
    }
    const auto schema = nlohmann::json::parse(json_schema(deepspeed_table()));
    EXPECT_EQ(schema.at("properties").at("gradient_clipping").at("anyOf")[1].at("const"), "auto");
    EXPECT_EQ(schema.at("properties").at("gradient_clipping").at("anyOf")[2].at("type"), "null");
    const auto& zero = schema.at("properties").at("zero_optimization").at("anyOf")[0];
    EXPECT_EQ(zero.at("properties").at("stage").at("anyOf")[0].at("maximum"), 3);
    EXPECT_EQ(zero.at("additionalProperties"), false);
    EXPECT_EQ(nlohmann::json::parse(json_schema(accelerate_table())).at("additionalProperties"), false);
}

TEST(FormatTable, StarsStandForAnyName) {
    const FormatTable& table = deepspeed_table();
    EXPECT_EQ(table.find("elasticity.max_gpus")->path, "elasticity.*");
    EXPECT_EQ(table.find("elasticity.enabled")->path, "elasticity.enabled");
    EXPECT_EQ(table.find("elasticity.a.b"), nullptr);
    EXPECT_EQ(table.find("nothing"), nullptr);
}

}  // namespace
