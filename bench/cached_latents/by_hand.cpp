#include "by_hand.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdeflate.h>
#include <zlib.h>

namespace by_hand {

namespace {

[[noreturn]] void fail(const char* why) {
    std::fprintf(stderr, "by hand: %s\n", why);
    std::exit(1);
}

/// Runs body(take) on so many threads; take() gives 0, 1, 2, ... to whoever asks.
template <class Body>
void on_threads(int threads, const Body& body) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) all.emplace_back([&] { body([&] { return next++; }); });
    for (std::thread& one : all) one.join();
}

}  // namespace

std::size_t read_all(const std::vector<std::filesystem::path>& files, int threads) {
    std::atomic<std::size_t> bytes{0};
    on_threads(threads, [&](const auto& take) {
        std::vector<std::byte> memory;
        for (std::size_t i = take(); i < files.size(); i = take()) {
            const int file = ::open(files[i].c_str(), O_RDONLY | O_CLOEXEC);
            struct ::stat status {};
            if (file < 0 || ::fstat(file, &status) != 0) fail("a file cannot be opened");
            const auto size = static_cast<std::size_t>(status.st_size);
            if (memory.size() < size) memory.resize(size);
            if (::pread(file, memory.data(), size, 0) != status.st_size) fail("a file cannot be read");
            ::close(file);
            bytes += size;
        }
    });
    return bytes;
}

std::size_t inflate_all(const std::vector<std::vector<std::byte>>& streams, std::size_t most, int threads) {
    std::atomic<std::size_t> bytes{0};
    on_threads(threads, [&](const auto& take) {
        std::vector<std::byte> memory(most);
        z_stream z{};
        if (::inflateInit2(&z, 15 + 16) != Z_OK) fail("no memory");  // 15 bits of window, 16: gzip
        for (std::size_t i = take(); i < streams.size(); i = take()) {
            ::inflateReset(&z);
            z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(streams[i].data()));
            z.avail_in = static_cast<uInt>(streams[i].size());
            z.next_out = reinterpret_cast<Bytef*>(memory.data());
            z.avail_out = static_cast<uInt>(memory.size());
            if (::inflate(&z, Z_FINISH) != Z_STREAM_END) fail("a stream cannot be inflated");
            bytes += z.total_out;
        }
        ::inflateEnd(&z);
    });
    return bytes;
}

std::size_t libdeflate_all(const std::vector<std::vector<std::byte>>& streams, std::size_t most, int threads) {
    std::atomic<std::size_t> bytes{0};
    on_threads(threads, [&](const auto& take) {
        std::vector<std::byte> memory(most);
        libdeflate_decompressor* const inflater = ::libdeflate_alloc_decompressor();
        if (inflater == nullptr) fail("no memory");
        for (std::size_t i = take(); i < streams.size(); i = take()) {
            std::size_t made = 0;
            if (::libdeflate_gzip_decompress(inflater, streams[i].data(), streams[i].size(), memory.data(),
                                             memory.size(), &made) != LIBDEFLATE_SUCCESS)
                fail("a stream cannot be inflated");
            bytes += made;
        }
        ::libdeflate_free_decompressor(inflater);
    });
    return bytes;
}

}  // namespace by_hand
