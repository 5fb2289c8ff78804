#include <map>
#include <string>

#include <gtest/gtest.h>

#include <strata/core/environment.hpp>
#include <strata/core/error.hpp>
#include <strata/core/secret.hpp>

namespace {

using strata::Errc;

strata::Environment of(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional{found->second};
    };
}

TEST(Environment, VariablesAreFilledInOnceAndNotLookedAtAgain) {
    const auto variables = of({{"A", "x{env:B}"}, {"B", "b"}, {"EMPTY", ""}});
    EXPECT_EQ(strata::expand_environment("<{env:A}|{env:B}{env:B}>", "k", variables), "<x{env:B}|bb>");
    EXPECT_EQ(strata::expand_environment("{env:EMPTY}", "k", variables), "");
    EXPECT_EQ(strata::expand_environment("plain {B} {env}", "k", variables), "plain {B} {env}");
}

TEST(Environment, ErrorsNameTheKeyAndTheVariableAndNotTheText) {
    for (const auto& [text, says] :
         std::map<std::string, std::string>{{"geheim{env:NOT_SET}", "the environment variable 'NOT_SET'"},
                                            {"geheim{env:A", "without its closing '}'"}}) {
        try {
            (void)strata::expand_environment(text, "the_key", of({{"A", "a"}}));
            ADD_FAILURE() << text;
        } catch (const strata::Error& error) {
            const std::string message = error.what();
            EXPECT_EQ(error.code(), Errc::bad_value);
            EXPECT_NE(message.find("the_key"), std::string::npos) << message;
            EXPECT_NE(message.find(says), std::string::npos) << message;
            EXPECT_EQ(message.find("geheim"), std::string::npos) << message;
        }
    }
}

TEST(Environment, TheProcessHasOne) {
    ::setenv("STRATA_TEST_ENVIRONMENT", "here", 1);
    EXPECT_EQ(strata::process_environment("STRATA_TEST_ENVIRONMENT"), "here");
    ::unsetenv("STRATA_TEST_ENVIRONMENT");
    EXPECT_FALSE(strata::process_environment("STRATA_TEST_ENVIRONMENT").has_value());
}

TEST(Environment, ASecretDoesNotPrintItself) {
    const strata::Secret secret{"geheim"};
    EXPECT_EQ(secret.reveal(), "geheim");
    EXPECT_FALSE(secret.empty());
    EXPECT_TRUE(strata::Secret{}.empty());
    static_assert(!std::is_convertible_v<strata::Secret, std::string>);
    static_assert(!std::is_convertible_v<strata::Secret, std::string_view>);
}

}  // namespace
