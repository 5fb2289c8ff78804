// `strata doctor` as a person meets it: on a real machine whose speeds and room are not known, so that what is asserted is what each line
// is about, and not how well the machine does.

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../support/fake_s3.hpp"
#include "doctor_run.hpp"

namespace {

namespace fs = std::filesystem;
namespace fake_s3 = strata_test::fake_s3;
using nlohmann::json;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::Outcome;

/// A bucket that knows what is asked of a bucket in a doctor's visit, and refuses some of it.
class FakeBucket {
public:
    explicit FakeBucket(std::set<std::string> refused) : refused_{std::move(refused)} {}

    FakeReply operator()(const FakeRequest& request) {
        const std::lock_guard lock{mutex_};
        const bool is_list = request.asks("list-type=2");
        if (refused_.contains(is_list ? "LIST" : request.method)) return FakeReply::error(403, "AccessDenied");
        const std::string key = request.target.substr(0, request.target.find('?'));
        if (is_list) return FakeReply::answer(200, listing());
        if (request.method == "PUT") {
            objects_[key] = request.body;
            return FakeReply::answer(200, "", "ETag: \"" + fake_s3::md5_of(request.body) + "\"\r\n");
        }
        if (request.method == "DELETE") return objects_.erase(key), FakeReply::answer(204);
        const auto found = objects_.find(key);
        if (found == objects_.end()) return FakeReply::error(404, "NoSuchKey");
        return fake_s3::object_for(request, found->second);
    }
    void put(const std::string& key, const std::string& bytes) { objects_["/b/" + key] = bytes; }
    [[nodiscard]] std::size_t size() const { return objects_.size(); }

private:
    [[nodiscard]] std::string listing() const {
        std::string text = "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>";
        for (const auto& [key, bytes] : objects_)
            text += "<Contents><Key>" + key.substr(3) + "</Key><Size>" + std::to_string(bytes.size()) +
                    "</Size><ETag>\"" + fake_s3::md5_of(bytes) + "\"</ETag></Contents>";
        return text + "</ListBucketResult>";
    }
    std::mutex mutex_;
    std::set<std::string> refused_;
    std::map<std::string, std::string> objects_;
};

struct DoctorCommand : strata_test::DoctorRun {
    void use_bucket_of(const FakeHttpServer& server) {
        variable("AWS_ENDPOINT_URL_S3", server.url());
        variable("AWS_ACCESS_KEY_ID", fake_s3::key_id);
        variable("AWS_SECRET_ACCESS_KEY", fake_s3::secret);
    }
};

TEST_F(DoctorCommand, LooksAtTheMachineAndLeavesNothing) {
    fs::create_directories(folder / "place");
    const json lines = lines_of({(folder / "place").string()});
    for (const char* subject :
         {"processor", "BLAS", "memory", "shared memory", "open files", "locked memory", "io_uring", "MPI"})
        (void)one_about(lines, subject);
    const json place = one_about(lines, "folder").at("values");
    // In a chroot no mount that is shown may say what its root is on.
    const bool is_root_shown = std::regex_search(strata_test::text_of("/proc/self/mountinfo"),
                                                 std::regex{R"((^|\n)[0-9]+ [0-9]+ [0-9:]+ [^ ]+ / )"});
    if (is_root_shown) {
        EXPECT_NE(place.at("type"), "");
    }
    EXPECT_GT(place.at("total"), 0);
    EXPECT_GE(one_about(lines, "processor").at("values").at("cores"), 1);
    expect_nothing_left(folder);

    const Outcome text = strata({(folder / "place").string()});
    EXPECT_TRUE(std::regex_search(text.out, std::regex{"(^|\n)[0-9]+ ok, [0-9]+ warnings, [0-9]+ problems\n$"}))
        << text.out;
    EXPECT_TRUE(std::regex_search(text.out, std::regex{"(^|\n)(ok      |warning |problem ) processor +[^ ]"}))
        << text.out;
    EXPECT_EQ(text.err, "");
}

TEST_F(DoctorCommand, AFolderThatIsNotThereAndOneThatIsNoneAreProblems) {
    std::ofstream{folder / "file"} << "text";
    const json lines = lines_of({(folder / "nowhere").string(), "--output", (folder / "file").string(), "--offload",
                                 (folder / "no_disk").string()});
    EXPECT_TRUE(has(one_about(lines, "folder"), "found", "there is no "));
    EXPECT_TRUE(has(one_about(lines, "output folder"), "found", "is no folder"));
    const json disk = one_about(lines, "offload folder");
    EXPECT_EQ(disk.at("state"), "problem");
    EXPECT_TRUE(has(disk, "fix", "mount the disk"));
    EXPECT_FALSE(fs::exists(folder / "no_disk"));
}

TEST_F(DoctorCommand, WordsThatAreNotUnderstoodAreOneSentence) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"--jsno"}, {"-n", "none"}, {"-n", "0"}, {"s3:///prefix"}, {"--hostfile"}, {"--include", "a"}}) {
        const Outcome outcome = strata(words);
        EXPECT_EQ(outcome.status, 2) << words.front() << outcome.err;
        EXPECT_NE(outcome.err.find("[ST2601]"), std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.out, "");
    }
    const Outcome help = strata({"--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("--offload DIR"), std::string::npos) << help.out;
}

TEST_F(DoctorCommand, ABucketsRightsAreTriedAndTheProbeIsDeleted) {
    FakeBucket bucket{{}};
    const FakeHttpServer server{[&](const FakeRequest& request) { return bucket(request); }};
    use_bucket_of(server);
    const json lines = lines_of({"s3://b/some/where"});
    const json line = one_about(lines, "bucket");
    EXPECT_EQ(line.at("state"), "ok") << line;
    for (const char* right : {"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"})
        EXPECT_EQ(line.at("values").at("rights").at(right), true) << right;
    EXPECT_EQ(bucket.size(), 0U);
    bool has_put = false;
    for (const FakeRequest& request : server.seen())
        if (request.method == "PUT") {
            has_put = true;
            EXPECT_TRUE(request.target.starts_with("/b/some/where/.strata-doctor-")) << request.target;
        }
    EXPECT_TRUE(has_put);
}

TEST_F(DoctorCommand, RightsThatAreMissingAreNamedAndNoSecretIsPrinted) {
    FakeBucket bucket{{"PUT", "LIST"}};
    const FakeHttpServer server{[&](const FakeRequest& request) { return bucket(request); }};
    use_bucket_of(server);
    const Outcome outcome = strata({"s3://b"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find("no right to s3:ListBucket, s3:PutObject"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("Fix: add s3:ListBucket, s3:PutObject to the policy"), std::string::npos) << outcome.out;
    EXPECT_EQ((outcome.out + outcome.err).find(fake_s3::secret), std::string::npos);

    variable("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1");
    const json line = one_about(lines_of({"s3://b"}), "bucket");
    EXPECT_TRUE(has(line, "found", "[ST2010]")) << line;
}

TEST_F(DoctorCommand, AConfigurationNamesItsPlaces) {
    FakeBucket bucket{{"PUT", "DELETE"}};
    bucket.put("pictures/a.png", "a picture");
    const FakeHttpServer server{[&](const FakeRequest& request) { return bucket(request); }};
    use_bucket_of(server);
    fs::create_directories(folder / "pictures");
    const std::string list =
        R"([{"id": "here", "type": "local", "instance_data_dir": ")" + (folder / "pictures").string() +
        R"(", "cache_dir_vae": ")" + (folder / "latents").string() +
        R"("}, {"id": "there", "type": "aws", "aws_bucket_name": "b", "aws_data_prefix": "pictures",
                             "vae_cache_disable": true},
                             {"id": "texts", "type": "local", "dataset_type": "text_embeds", "default": true, "cache_dir": ")" +
        (folder / "texts").string() + R"("}])";
    std::ofstream{folder / "list.json"} << list;
    std::ofstream{folder / "config.json"} << R"({"output_dir": ")" << (folder / "out").string()
                                          << R"(", "data_backend_config": ")" << (folder / "list.json").string()
                                          << R"(", "offload_nvme_path": ")" << folder.string()
                                          << R"(", "max_train_steps": 10})";
    const json lines = lines_of({"--config", (folder / "config.json").string()});
    EXPECT_EQ(one_about(lines, "configuration").at("state"), "ok") << lines;
    EXPECT_EQ(one_about(lines, "data folder").at("values").at("folder"), (folder / "pictures").string());
    EXPECT_EQ(about(lines, "cache folder").size(), 2U) << lines;
    EXPECT_EQ(one_about(lines, "output folder").at("values").at("folder"), (folder / "out").string());
    EXPECT_EQ(one_about(lines, "offload folder").at("values").at("folder"), folder.string());
    EXPECT_FALSE(fs::exists(folder / "out"));
    expect_nothing_left(folder);
    // Pictures are read only: that they cannot be written is nobody's problem.
    const json line = one_about(lines, "bucket");
    EXPECT_EQ(line.at("state"), "ok") << line;
    EXPECT_EQ(line.at("values").at("rights"), (json{{"s3:ListBucket", true}, {"s3:GetObject", true}}));

    const json of_list = lines_of({"--config", (folder / "list.json").string()});
    EXPECT_EQ(about(of_list, "cache folder").size(), 2U);
    EXPECT_EQ(about(of_list, "output folder").size(), 0U);
    std::ofstream{folder / "bad.json"} << R"({"output_dri": "x"})";
    const json refused = one_about(lines_of({"--config", (folder / "bad.json").string()}), "configuration");
    EXPECT_EQ(refused.at("state"), "problem");
    EXPECT_TRUE(has(refused, "found", "output_dri")) << refused;
}

TEST_F(DoctorCommand, GpusAreThoseThatTheDriverShows) {
    fs::create_directories(folder / "driver");
    fs::create_symlink(STRATA_FAKE_NVML_LIBRARY, folder / "driver" / "libnvidia-ml.so.1");
    std::ofstream{folder / "script"} << "count 2\ngpu0.name A100\ngpu0.uuid GPU-1\ngpu0.memory.total 1000\n"
                                     << "gpu1.name A100\ngpu1.uuid GPU-2\n";
    variable("LD_LIBRARY_PATH", (folder / "driver").string());
    variable("STRATA_FAKE_NVML", (folder / "script").string());
    const json lines = lines_of({folder.string()});
    EXPECT_EQ(one_about(lines, "GPU 0").at("values").at("uuid"), "GPU-1");
    EXPECT_EQ(one_about(lines, "GPU 1").at("values").at("uuid"), "GPU-2");
    variable("CUDA_VISIBLE_DEVICES", "1");
    const json fewer = lines_of({folder.string()});
    EXPECT_EQ(one_about(fewer, "GPU 0").at("values").at("uuid"), "GPU-2");
    EXPECT_TRUE(about(fewer, "GPU 1").empty());
}

}  // namespace
