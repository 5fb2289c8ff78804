#pragma once
// strata/http/impl/http_pool.ipp - one easy handle and one multi handle a connection, driven by the thread that
// asks.

#include <algorithm>
#include <cstring>
#include <utility>

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/http/http_pool.hpp>
#include <strata/http/public_address.hpp>

namespace strata::http {

namespace detail {

inline HttpFailure failure_of(CURLcode code) noexcept {
    switch (code) {
        case CURLE_OK:
            return HttpFailure::none;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
            return HttpFailure::unresolved;
        case CURLE_COULDNT_CONNECT:
            return HttpFailure::unreachable;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CERTPROBLEM:
            return HttpFailure::untrusted;
        case CURLE_OPERATION_TIMEDOUT:
            return HttpFailure::stalled;
        case CURLE_PARTIAL_FILE:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_SEND_FAIL_REWIND:
            return HttpFailure::broken;
        case CURLE_WRITE_ERROR:
            return HttpFailure::too_long;
        default:
            return HttpFailure::other;
    }
}

/// What libcurl's callbacks work on.
struct Transfer {
    const HttpRequest& request;
    HttpAnswer& answer;
    CURL* easy;
    const std::vector<curl_socket_t>& sockets;
    std::size_t body_sent = 0;
    bool status_known = false;
    bool direct = false;  // into request.into
    std::uint64_t most = 0;
    bool left = false;
    std::optional<storage::Md5Sum> sum{};

    static std::size_t receive_header(char* data, std::size_t, std::size_t size, void* self) noexcept {
        return static_cast<Transfer*>(self)->header({data, size}) ? size : 0;
    }
    static std::size_t receive_body(char* data, std::size_t, std::size_t size, void* self) noexcept {
        return static_cast<Transfer*>(self)->body(data, size) ? size : 0;
    }
    static std::size_t send_body(char* data, std::size_t, std::size_t size, void* self) noexcept {
        auto& transfer = *static_cast<Transfer*>(self);
        const auto rest = transfer.request.body.subspan(transfer.body_sent);
        const std::size_t count = std::min(size, rest.size());
        if (count > 0) std::memcpy(data, rest.data(), count);
        transfer.body_sent += count;
        transfer.answer.sent += count;
        return count;
    }
    static int seek_body(void* self, curl_off_t offset, int origin) noexcept {
        auto& transfer = *static_cast<Transfer*>(self);
        if (origin != SEEK_SET || offset < 0 || static_cast<std::size_t>(offset) > transfer.request.body.size())
            return CURL_SEEKFUNC_FAIL;
        transfer.body_sent = static_cast<std::size_t>(offset);
        return CURL_SEEKFUNC_OK;
    }

private:
    bool header(std::string_view line) noexcept try {
        while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
        if (line.starts_with("HTTP/")) {  // of the last answer: "100 Continue" comes before it
            answer.headers.clear();
            acknowledge();
            return true;
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return true;
        if (answer.headers.size() < 200)
            answer.headers.push_back(
                {core::lower_case(line.substr(0, colon)), std::string{core::trimmed(line.substr(colon + 1))}});
        return true;
    } catch (...) {
        return false;
    }

    /// Some servers (Ceph's) send head and body in two writes and let the second wait until the first is acknowledged,
    /// which a kernel that waits for something to send along does 40 ms later.
    void acknowledge() noexcept {
#ifdef TCP_QUICKACK
        const int on = 1;
        for (const curl_socket_t socket : sockets) ::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#endif
    }

    bool body(const char* data, std::size_t size) noexcept try {
        if (!status_known) {
            status_known = true;
            long status = 0;
            ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
            const bool wanted = status >= 200 && status < 300;
            direct = wanted && !request.into.empty();
            most = wanted ? request.most : std::uint64_t{1} << 20;
            answer.status = static_cast<int>(status);
            const BodyUse use = wanted && request.on_body ? request.on_body(answer) : BodyUse::take;
            if (use == BodyUse::take_and_sum) sum.emplace();
            left = use == BodyUse::leave;
            if (left) return false;
            if (!direct) reserve();
        }
        const std::uint64_t end = direct ? request.into.size() : most;
        const std::size_t taken = std::min<std::uint64_t>(size, end - std::min(end, answer.received));
        left = taken < size && request.cut;
        if (taken < size && !left) return false;
        const auto* const bytes = reinterpret_cast<const std::byte*>(data);
        if (direct)
            std::memcpy(request.into.data() + answer.received, bytes, taken);
        else
            answer.body.insert(answer.body.end(), bytes, bytes + taken);
        answer.received += taken;
        if (sum) sum->add({bytes, taken});
        return !left;
    } catch (...) {
        return false;
    }

    void reserve() {
        curl_off_t length = -1;
        ::curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length > 0) answer.body.reserve(std::min(most, static_cast<std::uint64_t>(length)));
    }
};

}  // namespace detail

/// An easy handle keeps the settings, its own multi handle the connection. Driving the multi handle ourselves lets
/// interrupt() act at once.
class HttpPool::Connection {
public:
    explicit Connection(const HttpOptions& options)
        : easy_{::curl_easy_init(), &::curl_easy_cleanup}, multi_{::curl_multi_init(), &::curl_multi_cleanup} {
        if (easy_ == nullptr || multi_ == nullptr)
            throw Error{Errc::not_enough_memory, "libcurl cannot make a connection", "free some memory"};
        ::curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, 1L);
        sockets_.reserve(16);
        set_up(options);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() = default;

    void perform(const HttpRequest& request, const std::atomic<bool>& interrupted, HttpAnswer& answer) {
        detail::Transfer transfer{request, answer, easy_.get(), sockets_};
        const Headers headers = header_list(request);
        forbidden_.clear();
        has_tried_ = false;
        set_up(request, transfer, headers.get());
        if (::curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) {
            answer.failure = HttpFailure::other;
            answer.reason = "libcurl refuses the request";
            return;
        }
        const CURLcode code = run(interrupted);
        ::curl_multi_remove_handle(multi_.get(), easy_.get());
        answer.failure = detail::failure_of(code);
        if (code == CURLE_OPERATION_TIMEDOUT) {
            double connected = 0;  // seconds from the start; 0 while there is no connection
            ::curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME, &connected);
            if (connected <= 0) answer.failure = HttpFailure::unreachable;
        }
        if (transfer.left) answer.failure = HttpFailure::left;
        if (code == CURLE_ABORTED_BY_CALLBACK) answer.failure = HttpFailure::interrupted;
        if (code != CURLE_OK && !forbidden_.empty() && !has_tried_) {
            answer.failure = HttpFailure::forbidden;
            answer.reason = forbidden_ + " is no public address";
            return;
        }
        if (code != CURLE_OK) answer.reason = error_[0] != '\0' ? error_ : ::curl_easy_strerror(code);
        long status = 0;
        ::curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
        answer.status = static_cast<int>(status);
        if (code == CURLE_OK && transfer.sum) answer.md5 = transfer.sum->finish();
    }

private:
    using Headers = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

    static Headers header_list(const HttpRequest& request) {
        Headers list{nullptr, &::curl_slist_free_all};
        const auto add = [&](const std::string& line) {
            curl_slist* const longer = ::curl_slist_append(list.get(), line.c_str());
            if (longer == nullptr) throw Error{Errc::not_enough_memory, "no memory for a request", "free some memory"};
            (void)list.release();
            list.reset(longer);
        };
        for (const auto& [name, value] : request.headers) add(value.empty() ? name + ";" : name + ": " + value);
        add("Accept:");  // without a value: libcurl leaves out what it would add by itself
        add("Content-Type:");
        return list;
    }

    static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
        auto& connection = *static_cast<Connection*>(self);
        if (connection.public_only_ && !is_public(address->addr)) {
            connection.forbid(address->addr);
            return CURL_SOCKET_BAD;
        }
        connection.has_tried_ = true;
        const curl_socket_t socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
        auto& sockets = connection.sockets_;
        if (socket != CURL_SOCKET_BAD && sockets.size() < sockets.capacity()) sockets.push_back(socket);
        return socket;
    }
    void forbid(const ::sockaddr& address) noexcept try { forbidden_ = address_text(address); } catch (...) {
        forbidden_.clear();  // no memory for it: then it is a connection that was not made
    }
    static int close_socket(void* self, curl_socket_t socket) noexcept {
        std::erase(static_cast<Connection*>(self)->sockets_, socket);
        return ::close(socket);
    }

    template <class Value>
    void set(CURLoption option, Value value) {
        const CURLcode code = ::curl_easy_setopt(easy_.get(), option, value);
        if (code != CURLE_OK)
            throw Error{Errc::store_unreachable, "libcurl cannot be set up: " + std::string{::curl_easy_strerror(code)},
                        "use a libcurl of version 7.87 or later with TLS"};
    }

    /// What is the same for every request.
    void set_up(const HttpOptions& options) {
        set(CURLOPT_PATH_AS_IS, 1L);
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
        set(CURLOPT_TCP_NODELAY, 1L);
        set(CURLOPT_TCP_KEEPALIVE, 1L);
        set(CURLOPT_OPENSOCKETFUNCTION, &Connection::open_socket);
        set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
        set(CURLOPT_CLOSESOCKETFUNCTION, &Connection::close_socket);
        set(CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
        set(CURLOPT_SSL_VERIFYPEER, options.verify ? 1L : 0L);
        set(CURLOPT_SSL_VERIFYHOST, options.verify ? 2L : 0L);
        if (!options.proxy) set(CURLOPT_PROXY, "");
        if (options.total_timeout.count() > 0)
            set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.total_timeout.count()));
        public_only_ = options.public_only;
        if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
        set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
        set(CURLOPT_LOW_SPEED_LIMIT, 1000L);
        set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
        set(CURLOPT_BUFFERSIZE, 256L * 1024L);
        set(CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024L);
        set(CURLOPT_HEADERFUNCTION, &detail::Transfer::receive_header);
        set(CURLOPT_WRITEFUNCTION, &detail::Transfer::receive_body);
        set(CURLOPT_READFUNCTION, &detail::Transfer::send_body);
        set(CURLOPT_SEEKFUNCTION, &detail::Transfer::seek_body);
    }

    void set_up(const HttpRequest& request, detail::Transfer& transfer, curl_slist* headers) {
        error_[0] = '\0';
        set(CURLOPT_URL, request.url.c_str());
        set(CURLOPT_HTTPHEADER, headers);
        for (const CURLoption data : {CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA})
            set(data, static_cast<void*>(&transfer));
        const bool has_body = request.method == "PUT" || request.method == "POST";
        const bool is_head = request.method == "HEAD";
        set(CURLOPT_HTTPGET, 1L);  // undoes the other two
        if (has_body) set(CURLOPT_UPLOAD, 1L);
        if (is_head) set(CURLOPT_NOBODY, 1L);
        set(CURLOPT_CUSTOMREQUEST, is_head ? nullptr : request.method.c_str());
        set(CURLOPT_INFILESIZE_LARGE, has_body ? static_cast<curl_off_t>(request.body.size()) : curl_off_t{-1});
    }

    CURLcode run(const std::atomic<bool>& interrupted) {
        while (true) {
            int running = 0;
            if (::curl_multi_perform(multi_.get(), &running) != CURLM_OK) return CURLE_RECV_ERROR;
            if (running == 0) break;
            if (interrupted.load(std::memory_order_relaxed)) return CURLE_ABORTED_BY_CALLBACK;
            if (::curl_multi_poll(multi_.get(), nullptr, 0, 100, nullptr) != CURLM_OK) return CURLE_RECV_ERROR;
        }
        int left = 0;
        while (const CURLMsg* message = ::curl_multi_info_read(multi_.get(), &left))
            if (message->msg == CURLMSG_DONE) return message->data.result;
        return CURLE_RECV_ERROR;
    }

    bool public_only_ = false;
    bool has_tried_ = false;              // to connect to an address of the request's host
    std::string forbidden_;               // an address that was not connected to
    std::vector<curl_socket_t> sockets_;  // open now; before the handles, which close them
    std::unique_ptr<CURL, void (*)(CURL*)> easy_;
    std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_;
    char error_[CURL_ERROR_SIZE] = {};
};

STRATA_INLINE std::string_view HttpAnswer::header(std::string_view lower_case_name) const noexcept {
    for (const HttpHeader& header : headers)
        if (header.name == lower_case_name) return header.value;
    return {};
}

STRATA_INLINE std::string_view HttpAnswer::text() const noexcept {
    return {reinterpret_cast<const char*>(body.data()), body.size()};
}

STRATA_INLINE HttpPool::HttpPool(HttpOptions options) : options_{std::move(options)} {
    static std::once_flag once;
    std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
}

STRATA_INLINE HttpPool::~HttpPool() = default;

STRATA_INLINE std::unique_ptr<HttpPool::Connection> HttpPool::take() {
    std::unique_lock lock{mutex_};
    freed_.wait(lock, [&] { return taken_ < options_.connections || is_interrupted(); });
    if (is_interrupted()) return nullptr;
    ++taken_;
    if (idle_.empty()) {
        lock.unlock();
        try {
            return std::make_unique<Connection>(options_);
        } catch (...) {
            give_back(nullptr);
            throw;
        }
    }
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
}

STRATA_INLINE void HttpPool::give_back(std::unique_ptr<Connection> connection) {
    {
        const std::lock_guard lock{mutex_};
        --taken_;
        if (connection != nullptr) idle_.push_back(std::move(connection));
    }
    freed_.notify_one();
}

STRATA_INLINE HttpAnswer HttpPool::perform(const HttpRequest& request) {
    HttpAnswer answer;
    std::unique_ptr<Connection> connection = take();
    if (connection == nullptr) {
        answer.failure = HttpFailure::interrupted;
        answer.reason = "interrupted";
        return answer;
    }
    try {
        connection->perform(request, interrupted_, answer);
    } catch (...) {
        give_back(nullptr);  // a connection in an unknown state is not used again
        throw;
    }
    give_back(std::move(connection));
    return answer;
}

STRATA_INLINE void HttpPool::interrupt() noexcept {
    {
        const std::lock_guard lock{mutex_};
        interrupted_.store(true, std::memory_order_relaxed);
    }
    freed_.notify_all();
    stopped_.notify_all();
}

STRATA_INLINE bool HttpPool::wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    return !stopped_.wait_for(lock, time, [&] { return is_interrupted(); });
}

}  // namespace strata::http
