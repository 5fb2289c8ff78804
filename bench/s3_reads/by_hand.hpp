#pragma once
// bench/s3_reads/by_hand.hpp - the same reads with libcurl alone: addresses signed beforehand, nothing checked.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/// A number of kept connections, each with its thread and its buffer.
class PlainCurl {
public:
    /// quick: have every answer's head acknowledged at once.
    PlainCurl(std::vector<std::string> urls, std::size_t object_bytes, int connections, bool quick)
        : urls_{std::move(urls)} {
        for (int i = 0; i < connections; ++i) {
            auto one = std::make_unique<Connection>();
            one->buffer.resize(object_bytes);
            one->quick = quick;
            one->easy = ::curl_easy_init();
            ::curl_easy_setopt(one->easy, CURLOPT_NOSIGNAL, 1L);
            ::curl_easy_setopt(one->easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
            ::curl_easy_setopt(one->easy, CURLOPT_BUFFERSIZE, 256L * 1024L);
            ::curl_easy_setopt(one->easy, CURLOPT_WRITEFUNCTION, &Connection::body);
            ::curl_easy_setopt(one->easy, CURLOPT_WRITEDATA, one.get());
            if (quick) {
                ::curl_easy_setopt(one->easy, CURLOPT_HEADERFUNCTION, &Connection::header);
                ::curl_easy_setopt(one->easy, CURLOPT_HEADERDATA, one.get());
                ::curl_easy_setopt(one->easy, CURLOPT_SOCKOPTFUNCTION, &Connection::opened);
                ::curl_easy_setopt(one->easy, CURLOPT_SOCKOPTDATA, one.get());
            }
            connections_.push_back(std::move(one));
        }
    }
    PlainCurl(const PlainCurl&) = delete;
    PlainCurl& operator=(const PlainCurl&) = delete;
    ~PlainCurl() {
        for (auto& one : connections_) ::curl_easy_cleanup(one->easy);
    }

    /// Reads every address once.
    void pass() {
        std::atomic<std::size_t> next{0};
        std::vector<std::thread> threads;
        for (auto& one : connections_)
            threads.emplace_back([&] {
                for (std::size_t i = next++; i < urls_.size(); i = next++) {
                    one->filled = 0;
                    ::curl_easy_setopt(one->easy, CURLOPT_URL, urls_[i].c_str());
                    long status = 0;
                    const CURLcode code = ::curl_easy_perform(one->easy);
                    ::curl_easy_getinfo(one->easy, CURLINFO_RESPONSE_CODE, &status);
                    if (code != CURLE_OK || status != 200 || one->filled != one->buffer.size()) {
                        std::fprintf(stderr, "libcurl alone: %s, status %ld\n", ::curl_easy_strerror(code), status);
                        std::exit(1);
                    }
                }
            });
        for (std::thread& thread : threads) thread.join();
    }

private:
    struct Connection {
        CURL* easy = nullptr;
        std::vector<std::byte> buffer;
        std::size_t filled = 0;
        curl_socket_t socket = CURL_SOCKET_BAD;
        bool quick = false;

        static std::size_t body(char* data, std::size_t, std::size_t size, void* self) {
            auto& one = *static_cast<Connection*>(self);
            if (size > one.buffer.size() - one.filled) return 0;
            std::memcpy(one.buffer.data() + one.filled, data, size);
            one.filled += size;
            return size;
        }
        static std::size_t header(char* data, std::size_t, std::size_t size, void* self) {
            const int on = 1;
            if (size > 5 && std::memcmp(data, "HTTP/", 5) == 0)
                ::setsockopt(static_cast<Connection*>(self)->socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
            return size;
        }
        static int opened(void* self, curl_socket_t socket, curlsocktype) {
            static_cast<Connection*>(self)->socket = socket;
            return CURL_SOCKOPT_OK;
        }
    };
    std::vector<std::string> urls_;
    std::vector<std::unique_ptr<Connection>> connections_;
};
