#include "launch_wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strata/storage/digest.hpp>

namespace strata::tools {

namespace {

constexpr std::size_t code_size = 32;
constexpr std::size_t most_files = 2;

void append(std::string& bytes, std::uint32_t number) {
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((number >> shift) & 0xFFU));
}
std::uint32_t number_at(std::string_view bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (unsigned i = 0; i < 4; ++i)
        number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    return number;
}

}  // namespace

File::~File() {
    if (number_ >= 0) ::close(number_);
}

bool has_input(int file) {
    pollfd watched{file, POLLIN, 0};
    return ::poll(&watched, 1, 0) > 0;
}

void Wire::seal(std::string key, bool listens) {
    key_ = std::move(key);
    listens_ = listens;
}

std::string Wire::code_of(std::string_view body, bool from_listener, std::uint64_t number) const {
    std::string text = from_listener ? "listener" : "caller";
    text += " " + std::to_string(number) + " ";
    text += body;
    const storage::Sha256 code = storage::hmac_sha256(std::as_bytes(std::span{key_}), text);
    return {reinterpret_cast<const char*>(code.data()), code.size()};
}

bool Wire::send(const Message& message, std::span<const int> files) {
    std::string body{static_cast<char>(message.kind)};
    for (const std::string& word : message.words) {
        append(body, static_cast<std::uint32_t>(word.size()));
        body += word;
    }
    if (!key_.empty()) body += code_of(body, listens_, sent_++);
    std::string bytes;
    append(bytes, static_cast<std::uint32_t>(body.size()));
    bytes += body;

    std::size_t sent = 0;
    while (sent < bytes.size()) {
        iovec part{bytes.data() + sent, bytes.size() - sent};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        alignas(cmsghdr) std::array<char, CMSG_SPACE(most_files * sizeof(int))> extra{};
        if (sent == 0 && !files.empty()) {
            header.msg_control = extra.data();
            header.msg_controllen = CMSG_SPACE(files.size_bytes());
            cmsghdr* const rights = CMSG_FIRSTHDR(&header);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(files.size_bytes());
            std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
        }
        const ssize_t n = ::sendmsg(socket(), &header, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (failure_ == 0) failure_ = errno;
            return false;
        }
        sent += static_cast<std::size_t>(n);
    }
    return true;
}

bool Wire::receive() {
    while (!broken_) {
        std::array<char, 4096> piece{};
        iovec part{piece.data(), piece.size()};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        alignas(cmsghdr) std::array<char, CMSG_SPACE(most_files * sizeof(int))> extra{};
        header.msg_control = extra.data();
        header.msg_controllen = extra.size();
        const ssize_t n = ::recvmsg(socket(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (n < 0) {
            failure_ = errno;
            closed_ = true;
            return false;
        }
        for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
            if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
            for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= rights->cmsg_len; at += sizeof(int)) {
                int file = -1;
                std::memcpy(&file, CMSG_DATA(rights) + at, sizeof file);
                files_.emplace_back(file);
            }
        }
        if (n == 0) {
            closed_ = true;
            return false;
        }
        bytes_.append(piece.data(), static_cast<std::size_t>(n));
        if (bytes_.size() >= 4 && number_at(bytes_, 0) > largest_) return false;
    }
    return false;
}

std::optional<Message> Wire::next() {
    if (bytes_.size() < 4) return std::nullopt;
    const std::size_t whole = 4 + std::size_t{number_at(bytes_, 0)};
    std::size_t end = whole;
    if (broken_ || end < 5 || bytes_.size() < end) return std::nullopt;
    if (!key_.empty()) {
        const bool is_long_enough = end >= 5 + code_size;
        const std::string_view body{bytes_.data() + 4, is_long_enough ? end - 4 - code_size : 0};
        unsigned differs = is_long_enough ? 0 : 1;
        if (is_long_enough) {
            const std::string code = code_of(body, !listens_, received_++);
            for (std::size_t i = 0; i < code_size; ++i)  // in the same time wherever they differ
                differs |= static_cast<unsigned char>(code[i] ^ bytes_[end - code_size + i]);
        }
        if (differs != 0) {
            broken_ = true;
            failure_ = EBADMSG;
            return std::nullopt;
        }
        end -= code_size;
    }
    Message message{static_cast<Message::Kind>(bytes_[4]), {}};
    for (std::size_t at = 5; at + 4 <= end;) {
        const std::size_t size = std::min<std::size_t>(number_at(bytes_, at), end - at - 4);
        message.words.push_back(bytes_.substr(at + 4, size));
        at += 4 + size;
    }
    bytes_.erase(0, whole);
    return message;
}

}  // namespace strata::tools
