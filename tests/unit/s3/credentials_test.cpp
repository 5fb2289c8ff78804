#include <concepts>
#include <fstream>
#include <map>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include <strata/s3/credentials.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace s3 = strata::s3;

template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
    out << value;
};
static_assert(Printable<std::string> && !Printable<strata::Secret>);
static_assert(!std::convertible_to<strata::Secret, std::string> &&
              !std::convertible_to<strata::Secret, std::string_view>);

strata::Environment environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional{found->second};
    };
}

s3::Credentials given(std::string id, std::string secret, std::string token = {}) {
    return {std::move(id), strata::Secret{std::move(secret)}, strata::Secret{std::move(token)}, {}};
}

TEST(Credentials, TheConfigurationComesFirst) {
    const auto found = s3::find_credentials(given("{env:MY_ID}", "a{env:MY_SECRET}b", "t"),
                                            environment({{"MY_ID", "id"},
                                                         {"MY_SECRET", "{env:MY_ID}"},
                                                         {"AWS_ACCESS_KEY_ID", "other"},
                                                         {"AWS_SECRET_ACCESS_KEY", "other"}}));
    EXPECT_EQ(found.access_key_id, "id");
    EXPECT_EQ(found.secret_access_key.reveal(), "a{env:MY_ID}b");
    EXPECT_EQ(found.session_token.reveal(), "t");
    EXPECT_EQ(found.source, "the configuration");
}

TEST(Credentials, TheEnvironmentComesSecond) {
    const auto found = s3::find_credentials(given("", ""), environment({{"AWS_ACCESS_KEY_ID", "id"},
                                                                        {"AWS_SECRET_ACCESS_KEY", "secret"},
                                                                        {"AWS_SESSION_TOKEN", "token"},
                                                                        {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"}}));
    EXPECT_EQ(found.access_key_id, "id");
    EXPECT_EQ(found.secret_access_key.reveal(), "secret");
    EXPECT_EQ(found.session_token.reveal(), "token");
}

TEST(Credentials, TheSharedFileComesThird) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "credentials").string();
    std::ofstream{path}
        << "# comment = [x]\n[default]\naws_access_key_id = one\naws_secret_access_key=s=1/+\n\n"
           "[ work ]\r\naws_access_key_id=two\r\n; aws_access_key_id=three\r\naws_secret_access_key = s2\r\n"
           "aws_session_token=t2\r\nregion=nowhere\r\n[half]\naws_access_key_id=x\n[other]\naws_secret_access_key=y\n";
    const auto read = [&](std::map<std::string, std::string> variables) {
        variables["AWS_SHARED_CREDENTIALS_FILE"] = path;
        return s3::find_credentials({}, environment(std::move(variables)));
    };
    EXPECT_EQ(read({}).access_key_id, "one");
    EXPECT_EQ(read({}).secret_access_key.reveal(), "s=1/+");
    EXPECT_TRUE(read({}).session_token.empty());
    EXPECT_EQ(read({{"AWS_PROFILE", "work"}}).access_key_id, "two");
    EXPECT_EQ(read({{"AWS_PROFILE", "work"}}).secret_access_key.reveal(), "s2");
    EXPECT_EQ(read({{"AWS_PROFILE", "work"}}).session_token.reveal(), "t2");
    const auto absent = thrown_by([&] { read({{"AWS_PROFILE", "absent"}}); });
    EXPECT_EQ(absent.code, Errc::no_credentials);
    EXPECT_TRUE(absent.says("[absent]") && absent.says(path)) << absent.message;
    const auto half = thrown_by([&] { read({{"AWS_PROFILE", "half"}}); });
    EXPECT_TRUE(half.says("aws_secret_access_key is missing") && half.says("[half]")) << half.message;
}

TEST(Credentials, TheSharedFileIsInTheHomeFolder) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / ".aws");
    std::ofstream{folder.path() / ".aws" / "credentials"}
        << "[default]\naws_access_key_id=home\naws_secret_access_key=s\n";
    EXPECT_EQ(s3::find_credentials({}, environment({{"HOME", folder.path().string()}})).access_key_id, "home");
}

TEST(Credentials, NothingFoundNamesEveryPlaceThatWasLookedAt) {
    const auto error = thrown_by([] { (void)s3::find_credentials({}, environment({{"HOME", "/nowhere"}})); });
    EXPECT_EQ(error.code, Errc::no_credentials);
    for (const char* place : {"aws_access_key_id", "AWS_ACCESS_KEY_ID", "/nowhere/.aws/credentials"})
        EXPECT_TRUE(error.says(place)) << error.message;
    EXPECT_EQ(thrown_by([] { (void)s3::find_credentials({}, environment({})); }).code, Errc::no_credentials);
}

TEST(Credentials, HalvesOfTwoPlacesAreNotPutTogether) {
    const auto variables = environment({{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}});
    for (const auto& half : {given("id", ""), given("", "geheim"), given("", "", "geheim")}) {
        const auto error = thrown_by([&] { (void)s3::find_credentials(half, variables); });
        EXPECT_EQ(error.code, Errc::no_credentials);
        EXPECT_TRUE(error.says("the configuration") && error.says("is missing")) << error.message;
        EXPECT_FALSE(error.says("geheim")) << error.message;
    }
    const auto error = thrown_by([] {
        (void)s3::find_credentials({}, environment({{"AWS_SECRET_ACCESS_KEY", "geheim"}}));
    });
    EXPECT_TRUE(error.says("AWS_ACCESS_KEY_ID is missing")) << error.message;
    EXPECT_FALSE(error.says("geheim")) << error.message;
}

TEST(Credentials, AVariableThatIsNotSetIsNamedAndTheTextAroundItIsNot) {
    const auto error =
        thrown_by([] { (void)s3::find_credentials(given("id", "geheim{env:NOT_SET}"), environment({})); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("aws_secret_access_key") && error.says("NOT_SET")) << error.message;
    EXPECT_FALSE(error.says("geheim")) << error.message;
    EXPECT_EQ(thrown_by([] { (void)strata::expand_environment("{env:X", "k", environment({})); }).code,
              Errc::bad_value);
    EXPECT_EQ(strata::expand_environment("a{env:X}b{env:X}", "k", environment({{"X", "1"}})), "a1b1");
    EXPECT_EQ(strata::expand_environment("{env}}{", "k", environment({})), "{env}}{");
}

TEST(Credentials, WordsOfAServerAreShownWithoutSecretsAndControlCharacters) {
    const auto keys = given("AKIDEXAMPLE", "geheim", "token123");
    EXPECT_EQ(s3::presentable("a geheim, AKIDEXAMPLE token123geheim\n\x1b[31m!", keys), "a ***, *** ******  [31m!");
    EXPECT_EQ(s3::presentable(std::string(1000, 'x'), keys).size(), 300U);
}

}  // namespace
