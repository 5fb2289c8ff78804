#include "bucket.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <random>
#include <utility>

#include <strata/core/text.hpp>
#include <strata/s3/s3.hpp>

namespace strata::tools::doctor {

namespace {

/// After these every other call fails alike.
bool ends_all(Errc code) {
    return code != Errc::store_refused && code != Errc::not_found && code != Errc::no_space && code != Errc::bad_answer;
}

std::string probe_key() {
    std::random_device random;
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x%08x", random(), random());
    return ".strata-doctor-" + std::string{digits.data()};
}

class Trial {
public:
    explicit Trial(BucketFacts& facts) : facts_{facts} {}

    /// False when it was refused, or nothing more can be tried.
    bool run(const std::string& right, const std::function<void()>& call) {
        if (is_over_) return false;
        const auto begin = std::chrono::steady_clock::now();
        Tried& tried = facts_.tried.emplace_back(Tried{right});
        try {
            call();
        } catch (const Error& error) {
            tried.code = error.code();
            tried.failure = error.what();
            is_over_ = ends_all(error.code());
        }
        const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        if (facts_.tried.size() == 1)
            facts_.first_ms = ms;
        else
            facts_.later_ms = facts_.later_ms > 0 ? std::min(facts_.later_ms, ms) : ms;
        return !tried.code;
    }

private:
    BucketFacts& facts_;
    bool is_over_ = false;
};

}  // namespace

BucketFacts look_at_bucket(BucketPlace place) {
    BucketFacts facts{place.name, place.is_written, {}};
    place.options.retry = {.patience = std::chrono::seconds{3}, .attempts_at_first = 2, .attempts_at_damage = 2};
    place.options.connect_timeout = std::chrono::seconds{5};
    place.options.stall_timeout = std::chrono::seconds{10};
    Trial trial{facts};
    std::optional<S3> store;
    std::string first;
    trial.run("s3:ListBucket", [&] {
        place.options.data_prefix =
            expand_environment(place.options.data_prefix, "aws_data_prefix", place.options.environment);
        store.emplace(std::move(place.options));
        const storage::ObjectPage page = store->list_page("", "", 10);
        for (const storage::ObjectInfo& object : page.objects)
            if (first.empty() && object.size > 0) first = object.key;
    });
    if (!store) return facts;
    if (!place.is_written) {
        if (!first.empty()) trial.run("s3:GetObject", [&] { (void)store->get_range(first, 0, 1); });
        return facts;
    }
    const std::string key = probe_key();
    const std::string text = "strata doctor writes this and deletes it again";
    const bool is_there = trial.run("s3:PutObject", [&] { store->put(key, core::bytes_of(text)); });
    if (is_there)
        trial.run("s3:GetObject", [&] {
            if (const auto bytes = store->get(key); !std::ranges::equal(bytes, core::bytes_of(text)))
                throw Error{Errc::bad_answer, "what was read from '" + store->where(key) + "' is not what was written",
                            "look at the server's disks and at what is between"};
        });
    else if (!first.empty())
        trial.run("s3:GetObject", [&] { (void)store->get_range(first, 0, 1); });
    if (is_there) trial.run("s3:DeleteObject", [&] { store->remove(key); });
    return facts;
}

Line judge(const BucketFacts& facts) {
    std::string done;
    std::string missing;
    const Tried* other = nullptr;
    for (const Tried& tried : facts.tried) {
        if (!tried.code) {
            done += (done.empty() ? "" : ", ") + tried.right;
        } else if (tried.code == Errc::store_refused &&
                   tried.failure.find("has no right to do this") != std::string::npos) {
            missing += (missing.empty() ? "" : ", ") + tried.right;
        } else if (other == nullptr) {
            other = &tried;
        }
    }
    std::array<char, 64> times{};
    std::snprintf(times.data(), times.size(), " in %.0f ms, then %.0f ms", facts.first_ms, facts.later_ms);
    Line line = ok("bucket", facts.name + " answers" + (facts.later_ms > 0 ? times.data() : "") + ": " + done);
    if (other != nullptr) {
        const std::size_t fix = other->failure.find(". Fix: ");
        line = problem("bucket", facts.name + ": " + other->failure.substr(0, fix),
                       fix == std::string::npos ? "look at the server's log" : other->failure.substr(fix + 7));
    } else if (!missing.empty()) {
        line = problem(
            "bucket",
            facts.name + ": the keys have no right to " + missing + (done.empty() ? "" : "; they have " + done),
            "add " + missing +
                " to the policy of these keys: s3:ListBucket on the bucket, the others on what begins with the prefix" +
                (missing.find("DeleteObject") != std::string::npos
                     ? "; remove the object .strata-doctor-* that is left there"
                     : ""));
    }
    nlohmann::json rights = nlohmann::json::object();
    for (const Tried& tried : facts.tried) rights[tried.right] = !tried.code;
    line.values = {
        {"bucket", facts.name}, {"rights", rights}, {"first_ms", facts.first_ms}, {"later_ms", facts.later_ms}};
    return line;
}

}  // namespace strata::tools::doctor
