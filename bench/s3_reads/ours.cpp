// bench/s3_reads/ours.cpp - how fast do cached latents come from an S3 server?
//
//   bench/run.sh s3_reads [OBJECTS [ROUNDS]]          (run.sh starts the server and adds its address and keys)
//
// Objects of 150 KB, read by 2, 8 and 32 threads. Ours: S3::get, signed, length and MD5 sum checked. Limit: as many
// libcurl connections, addresses signed beforehand, bytes copied and nothing else, with the same early
// acknowledgements. Peers: the same without these, which is what libcurl does by itself; boto3 with as many threads, if
// it is installed. All in turn, several rounds; the bytes are compared first.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <strata/http/url.hpp>
#include <strata/s3/s3.hpp>
#include <strata/s3/sigv4.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

using bench::median, bench::seconds_of;

using namespace strata;
constexpr std::size_t object_bytes = 150'000;
const std::string bucket = "latents";

/// Bytes like those of latents: nothing to compress.
std::vector<std::byte> latent(std::size_t index) {
    std::vector<std::byte> bytes(object_bytes);
    std::uint64_t state = 2 * index + 1;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 6364136223846793005ULL + 1) >> 56U);
    return bytes;
}

std::string name(std::size_t index) { return "vae/" + std::to_string(index) + ".safetensors"; }

struct Server {
    std::string url;
    std::string key;
    strata::Secret secret;

    [[nodiscard]] std::string host() const { return url.substr(url.find("://") + 3); }

    /// An address that anybody may read for a day.
    [[nodiscard]] std::string signed_address(const std::string& object) const {
        const s3::SigningScope scope{s3::signing_time(std::chrono::system_clock::now()), "us-east-1"};
        const std::string path = "/" + bucket + "/" + http::percent_encode(object, true);
        const std::string query =
            http::canonical_query({{"X-Amz-Algorithm", "AWS4-HMAC-SHA256"},
                                   {"X-Amz-Credential", key + "/" + scope.date() + "/us-east-1/s3/aws4_request"},
                                   {"X-Amz-Date", scope.time},
                                   {"X-Amz-Expires", "86400"},
                                   {"X-Amz-SignedHeaders", "host"}});
        const std::string text = s3::string_to_sign(
            scope, s3::canonical_request({"GET", path, query, {{"host", host()}}, "UNSIGNED-PAYLOAD"}));
        return url + path + "?" + query + "&X-Amz-Signature=" + s3::signature(s3::signing_key(secret, scope), text);
    }

    void make_bucket() const {
        const s3::SigningScope scope{s3::signing_time(std::chrono::system_clock::now()), "us-east-1"};
        s3::SignedParts parts{"PUT", "/" + bucket, "", {}, storage::to_hex(storage::sha256({}))};
        parts.headers = {{"x-amz-date", scope.time}, {"x-amz-content-sha256", parts.payload_sha256}};
        http::HttpRequest request{.method = "PUT", .url = url + "/" + bucket, .headers = parts.headers};
        parts.headers.push_back({"host", host()});
        request.headers.push_back(
            {"Authorization", s3::authorization(key, s3::signing_key(secret, scope), scope, parts)});
        if (http::HttpPool{{}}.perform(request).status != 200) std::exit(1);
    }
};

/// peer.py for one number of connections, or nobody.
class Boto {
public:
    Boto(const Server& server, std::size_t objects, int connections) {
        const char* const python = std::getenv("BENCH_PEER_PYTHON");
        const char* const script = std::getenv("BENCH_PEER_SCRIPT");
        if (python == nullptr || script == nullptr) return;
        int in[2];
        int out[2];
        if (::pipe(in) != 0 || ::pipe(out) != 0) return;
        process_ = ::fork();
        if (process_ == 0) {
            ::dup2(in[0], 0);
            ::dup2(out[1], 1);
            for (const int end : {in[0], in[1], out[0], out[1]}) ::close(end);
            ::execl(python, python, script, server.url.c_str(), server.key.c_str(), server.secret.reveal().c_str(),
                    bucket.c_str(), std::to_string(connections).c_str(), nullptr);
            ::_exit(127);
        }
        ::close(in[0]);
        ::close(out[1]);
        in_ = ::fdopen(in[1], "w");
        out_ = ::fdopen(out[0], "r");
        for (std::size_t i = 0; i < objects; ++i) std::fprintf(in_, "%s\n", name(i).c_str());
        std::fputs("\n", in_);
        std::fflush(in_);
        char line[64];
        ready_ = std::fgets(line, sizeof line, out_) != nullptr;
    }
    Boto(const Boto&) = delete;
    Boto& operator=(const Boto&) = delete;
    ~Boto() {
        if (in_ == nullptr) return;
        std::fclose(in_);
        std::fclose(out_);
        ::waitpid(process_, nullptr, 0);
    }
    [[nodiscard]] bool ready() const noexcept { return ready_; }
    double pass() {
        std::fputs("go\n", in_);
        std::fflush(in_);
        char line[64];
        return std::fgets(line, sizeof line, out_) != nullptr ? std::atof(line) : 0;
    }

private:
    pid_t process_ = -1;
    std::FILE* in_ = nullptr;
    std::FILE* out_ = nullptr;
    bool ready_ = false;
};

void read_all(const S3& store, std::size_t objects, int threads) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < threads; ++t)
        readers.emplace_back([&] {
            for (std::size_t i = next++; i < objects; i = next++)
                if (store.get(name(i)).size() != object_bytes) std::exit(1);
        });
    for (std::thread& reader : readers) reader.join();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: bench/run.sh s3_reads [OBJECTS [ROUNDS]]\n");
        return 2;
    }
    const Server server{argv[1], argv[2], strata::Secret{argv[3]}};
    const std::size_t objects = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 400;
    const int rounds = argc > 5 ? std::atoi(argv[5]) : 9;
    server.make_bucket();
    s3::S3Options options;
    options.bucket = bucket;
    options.region = "us-east-1";
    options.endpoint_url = server.url;
    options.access_key_id = server.key;
    options.secret_access_key = server.secret;
    const S3 writer{options};
    std::vector<std::string> urls;
    for (std::size_t i = 0; i < objects; ++i) {
        writer.put(name(i), latent(i));
        urls.push_back(server.signed_address(name(i)));
    }
    for (std::size_t i = 0; i < objects; i += 7)
        if (writer.get(name(i)) != latent(i)) {
            std::fprintf(stderr, "%s is wrong\n", name(i).c_str());
            return 1;
        }

    const double megabytes = static_cast<double>(objects * object_bytes) / 1e6;
    for (const int connections : {2, 8, 32}) {
        options.max_pool_connections = connections;
        const S3 store{options};
        PlainCurl limit{urls, object_bytes, connections, true};
        PlainCurl plain{urls, object_bytes, connections, false};
        Boto boto{server, objects, connections};
        std::vector<double> ours_times;
        std::vector<double> limit_times;
        std::vector<double> plain_times;
        std::vector<double> boto_times;
        for (int round = -1; round < rounds; ++round) {  // the first one opens the connections
            const double before = seconds_of([&] { limit.pass(); });
            const double ours = seconds_of([&] { read_all(store, objects, connections); });
            const double after = seconds_of([&] { limit.pass(); });
            const double by_itself = seconds_of([&] { plain.pass(); });
            const double with_boto = boto.ready() ? boto.pass() : 0;
            if (round < 0) continue;
            ours_times.push_back(ours);
            limit_times.push_back((before + after) / 2);
            plain_times.push_back(by_itself);
            boto_times.push_back(with_boto);
        }
        std::vector<double> shares;  // round by round: other load hits both alike
        for (std::size_t i = 0; i < ours_times.size(); ++i) shares.push_back(limit_times[i] / ours_times[i]);
        const double ours = megabytes / median(ours_times);
        const auto print = [&](const std::string& case_name, const std::string& peer_name, double peer_time) {
            const double peer = megabytes / peer_time;
            std::printf(
                "{\"bench\":\"s3_reads\",\"case\":\"%s\",\"ours\":%.1f,\"unit\":\"MB/s\",\"peer\":%.1f,"
                "\"peer_name\":\"%s\",\"ratio\":%.2f,\"limit\":%.1f,"
                "\"limit_name\":\"libcurl with early acknowledgements\",\"of_limit\":%.3f}\n",
                case_name.c_str(), ours, peer, peer_name.c_str(), ours / peer, megabytes / median(limit_times),
                median(shares));
        };
        const std::string case_name = std::to_string(connections) + " connections";
        print(case_name, "libcurl by itself", median(plain_times));
        if (boto.ready()) print(case_name + ", boto3", "boto3", median(boto_times));
        if (store.traffic().retries > 0)
            std::printf("requests made again: %llu\n", static_cast<unsigned long long>(store.traffic().retries));
    }
}
