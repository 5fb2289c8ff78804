#pragma once
// bench/cached_latents/by_hand.hpp - the machine's limits: files read and nothing else, gzip streams inflated and
// nothing else.

#include <cstddef>
#include <filesystem>
#include <vector>

namespace by_hand {

/// Reads every file once, whole, with so many threads; each thread reads into memory that it keeps. Bytes read.
std::size_t read_all(const std::vector<std::filesystem::path>& files, int threads);

/// Inflates every gzip stream once with zlib, in one call each, with so many threads; each thread keeps its stream and
/// its memory. zlib compares the check sums, as it always does. Bytes made.
///
///   most  no stream holds more bytes
std::size_t inflate_all(const std::vector<std::vector<std::byte>>& streams, std::size_t most, int threads);

/// The same with libdeflate.
std::size_t libdeflate_all(const std::vector<std::vector<std::byte>>& streams, std::size_t most, int threads);

}  // namespace by_hand
