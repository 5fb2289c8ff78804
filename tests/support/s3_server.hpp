#pragma once
// tests/support/s3_server.hpp - a real S3 server for a test suite: tests/storage/s3_server.sh while this object
// lives.

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/http/http_pool.hpp>
#include <strata/s3/s3_options.hpp>
#include <strata/s3/sigv4.hpp>

#include "fake_http_server.hpp"
#include "temporary_folder.hpp"

namespace strata_test {

class S3Server {
public:
    S3Server() {
        const int port = free_port_pair();
        int to_script[2];
        int from_script[2];
        if (::pipe2(to_script, O_CLOEXEC) != 0 || ::pipe2(from_script, O_CLOEXEC) != 0)
            throw std::runtime_error{"no pipe"};
        const std::string script = std::string{STRATA_SOURCE_DIR} + "/tests/storage/s3_server.sh";
        const std::string folder = (folder_.path() / "server").string();
        const std::string port_text = std::to_string(port);
        script_ = ::fork();
        if (script_ == 0) {
            ::dup2(to_script[0], 0);
            ::dup2(from_script[1], 1);
            ::execl(script.c_str(), script.c_str(), folder.c_str(), port_text.c_str(), key, secret, nullptr);
            ::_exit(127);
        }
        ::close(to_script[0]);
        ::close(from_script[1]);
        stop_ = to_script[1];
        const std::string line = first_line(from_script[0]);
        ::close(from_script[0]);
        if (line.starts_with("ready ")) {
            url_ = line.substr(6);
            port_ = port;
        } else {
            why_not_ = line.empty() ? "tests/storage/s3_server.sh said nothing" : line;
        }
    }
    S3Server(const S3Server&) = delete;
    S3Server& operator=(const S3Server&) = delete;
    ~S3Server() {
        ::close(stop_);
        int status = 0;
        ::waitpid(script_, &status, 0);
    }

    static constexpr const char* key = "TESTKEY0123456789";
    static constexpr const char* secret = "test-secret/0123456789+abcdef";

    [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }  ///< empty if it runs
    [[nodiscard]] bool is_missing() const noexcept { return why_not_.find("is not installed") != std::string::npos; }
    [[nodiscard]] const std::string& url() const noexcept { return url_; }
    [[nodiscard]] int port() const noexcept { return port_; }

    /// Options for a bucket of this server, which is made if it is not there.
    [[nodiscard]] strata::s3::S3Options bucket(const std::string& name) const {
        create(name);
        strata::s3::S3Options options;
        options.bucket = name;
        options.region = "us-east-1";
        options.endpoint_url = url_;
        options.access_key_id = key;
        options.secret_access_key = secret;
        return options;
    }

private:
    void create(const std::string& bucket) const {
        using namespace strata::http;
        using namespace strata::s3;
        using namespace strata::storage;
        const SigningScope scope{signing_time(std::chrono::system_clock::now()), "us-east-1"};
        SignedParts parts{"PUT", "/" + bucket, "", {}, to_hex(sha256({}))};
        parts.headers = {{"x-amz-date", scope.time}, {"x-amz-content-sha256", parts.payload_sha256}};
        HttpRequest request{.method = "PUT", .url = url_ + "/" + bucket, .headers = parts.headers};
        parts.headers.push_back({"host", url_.substr(std::string{"http://"}.size())});
        request.headers.push_back(
            {"Authorization", authorization(key, signing_key(Secret{secret}, scope), scope, parts)});
        const HttpAnswer answer = HttpPool{HttpOptions{}}.perform(request);
        if (answer.status != 200)
            throw std::runtime_error{"no bucket: " + std::to_string(answer.status) + answer.reason};
    }

    static std::string first_line(int descriptor) {
        std::string line;
        for (char c = 0; ::read(descriptor, &c, 1) == 1 && c != '\n';) line += c;
        return line;
    }

    /// A port that is free now, as is the one after it.
    static int free_port_pair() {
        for (int attempt = 0; attempt < 100; ++attempt) {
            const int first = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const int second = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in address = Listener::loopback(0);
            socklen_t size = sizeof address;
            ::bind(first, reinterpret_cast<sockaddr*>(&address), size);
            ::getsockname(first, reinterpret_cast<sockaddr*>(&address), &size);
            const int port = ntohs(address.sin_port);
            address = Listener::loopback(port + 1);
            const bool both = port < 65535 && ::bind(second, reinterpret_cast<sockaddr*>(&address), size) == 0;
            ::close(first);
            ::close(second);
            if (both) return port;
        }
        throw std::runtime_error{"no free ports"};
    }

    TemporaryFolder folder_;
    pid_t script_ = -1;
    int stop_ = -1;
    int port_ = 0;
    std::string url_;
    std::string why_not_;
};

/// For suites whose tests share one server; they skip where it cannot be started.
class WithS3Server : public testing::Test {
protected:
    static void SetUpTestSuite() { server = std::make_unique<S3Server>(); }
    static void TearDownTestSuite() { server.reset(); }
    void SetUp() override {
        if (server->is_missing()) GTEST_SKIP() << server->why_not();
        ASSERT_EQ(server->why_not(), "");
    }
    static inline std::unique_ptr<S3Server> server;
};

}  // namespace strata_test
