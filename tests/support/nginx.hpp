#pragma once
// tests/support/nginx.hpp - nginx in front of a test's own server, as people have it in front of theirs.

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "fake_http_server.hpp"
#include "own_certificate.hpp"
#include "temporary_folder.hpp"

namespace strata_test {

/// One server, for http and for https. What is asked for below /app/ it hands to a server behind it, bodies up to 64 KiB; /moved/ it answers with 307.
///
/// It is given sockets that listen already, as it is when it is upgraded: no port is guessed, and nobody waits for its start.
class Nginx {
public:
    ///   behind  "http://127.0.0.1:1234"
    explicit Nginx(const std::string& behind) {
        const std::filesystem::path program = found();
        const std::string folder = folder_.path().string();
        const OwnCertificate certificate{"IP:127.0.0.1", ca_file()};
        certificate.write_key(folder_.path() / "key.pem");
        std::array<int, 2> sockets{};
        for (std::size_t i = 0; i < sockets.size(); ++i) sockets[i] = listening(ports_[i]);
        std::ofstream{folder_.path() / "nginx.conf"}
            << "daemon off; pid " << folder << "/pid; error_log " << folder << "/log;\n"
            << "events { }\n"
            << "http {\n access_log off; client_max_body_size 64k; client_body_buffer_size 64k;\n"
            << " client_body_temp_path " << folder << "/body; proxy_temp_path " << folder << "/proxy;\n"
            << " fastcgi_temp_path " << folder << "/f; uwsgi_temp_path " << folder << "/u; scgi_temp_path " << folder
            << "/s;\n"
            << " server {\n  listen 127.0.0.1:" << ports_[0] << "; listen 127.0.0.1:" << ports_[1] << " ssl;\n"
            << "  ssl_certificate " << ca_file().string() << "; ssl_certificate_key " << folder << "/key.pem;\n"
            << "  location /app/ { proxy_pass " << behind << "; }\n"
            << "  location /moved/ { return 307 " << behind << "; }\n } }\n";
        const std::string inherited = "NGINX=" + std::to_string(sockets[0]) + ";" + std::to_string(sockets[1]) + ";";
        const std::string conf = folder + "/nginx.conf", log = folder + "/log";
        const std::array<const char*, 8> words{program.c_str(), "-p", folder.c_str(), "-e",
                                               log.c_str(),     "-c", conf.c_str(),   nullptr};
        const std::array<const char*, 2> environment{inherited.c_str(), nullptr};
        process_ = ::fork();
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a test that crashes leaves nothing behind
            const int nowhere = ::open("/dev/null", O_RDWR);
            for (const int stream : {0, 1, 2}) ::dup2(nowhere, stream);
            ::execve(program.c_str(), const_cast<char* const*>(words.data()),
                     const_cast<char* const*>(environment.data()));
            ::_exit(127);
        }
        for (const int socket : sockets) ::close(socket);
    }
    Nginx(const Nginx&) = delete;
    Nginx& operator=(const Nginx&) = delete;
    ~Nginx() {
        ::kill(process_, SIGTERM);  // which it hands on to its worker
        ::waitpid(process_, nullptr, 0);
    }

    /// Where it is installed: in a folder of PATH, or where Debian has it; empty: it is not.
    [[nodiscard]] static std::filesystem::path found() {
        const char* const path = std::getenv("PATH");
        std::string folders = std::string{path != nullptr ? path : ""} + ":/usr/sbin:";
        for (std::size_t at = 0, end = 0; (end = folders.find(':', at)) != std::string::npos; at = end + 1)
            if (const auto file = std::filesystem::path{folders.substr(at, end - at)} / "nginx";
                end > at && ::access(file.c_str(), X_OK) == 0)
                return file;
        return {};
    }

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(ports_[0]); }
    [[nodiscard]] std::string tls_url() const { return "https://127.0.0.1:" + std::to_string(ports_[1]); }
    [[nodiscard]] std::filesystem::path ca_file() const { return folder_.path() / "server.pem"; }
    /// What it complains about.
    [[nodiscard]] std::string log() const {
        std::ifstream file{folder_.path() / "log"};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

private:
    /// A socket that it inherits; `port` is the one that was free.
    static int listening(int& port) {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address = Listener::loopback(0);
        socklen_t size = sizeof address;
        if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            ::listen(socket, 64) != 0 || ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error{"no socket on loopback"};
        port = ntohs(address.sin_port);
        return socket;
    }

    TemporaryFolder folder_;
    std::array<int, 2> ports_{};
    pid_t process_ = -1;
};

}  // namespace strata_test
