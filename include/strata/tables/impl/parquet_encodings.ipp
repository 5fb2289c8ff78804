#pragma once
// strata/tables/impl/parquet_encodings.ipp - runs, differences and levels.

#include <bit>

#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_encodings.hpp>

namespace strata::tables::detail::parquet {

STRATA_INLINE std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t at, unsigned width) noexcept {
    if (width == 0) return 0;
    const auto byte = static_cast<std::size_t>(at / 8);
    const auto shift = static_cast<unsigned>(at % 8);
    std::uint64_t low = 0;
    if (bytes.size() - byte >= 8) {
        std::memcpy(&low, bytes.data() + byte, 8);
    } else {
        std::memcpy(&low, bytes.data() + byte, bytes.size() - byte);
    }
    std::uint64_t bits = low >> shift;
    if (width + shift > 64) bits |= static_cast<std::uint64_t>(bytes[byte + 8]) << (64 - shift);
    return width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

STRATA_INLINE RunReader::RunReader(std::span<const std::byte> bytes, unsigned width, const Place& place)
    : bytes_{bytes}, in_{bytes, place}, width_{width} {
    if (width > 32) place.damaged("its numbers would have " + std::to_string(width) + " bits");
}

STRATA_INLINE void RunReader::next_run() {
    const std::uint64_t head = in_.varint();
    const std::uint64_t count = head >> 1;
    if (count == 0 || count >> 31 != 0) in_.place().damaged("a run has " + std::to_string(count) + " numbers");
    is_packed_ = (head & 1) != 0;
    if (is_packed_) {
        left_ = count * 8;
        bit_ = in_.position() * 8;
        // Some writers leave out what the last group does not need.
        bit_end_ = (in_.position() + in_.take(std::min<std::uint64_t>(count * width_, in_.left())).size()) * 8;
    } else {
        left_ = count;
        value_ = 0;
        std::memcpy(&value_, in_.take((width_ + 7) / 8).data(), (width_ + 7) / 8);
        if (width_ < 32 && value_ >> width_ != 0)
            in_.place().damaged("a number has more than " + std::to_string(width_) + " bits");
    }
}

STRATA_INLINE void RunReader::require_packed(std::size_t count) const {
    if (bit_ + count * width_ > bit_end_) in_.place().damaged("its packed numbers end too early");
}

STRATA_INLINE DeltaReader::DeltaReader(std::span<const std::byte> bytes, const Place& place)
    : bytes_{bytes}, in_{bytes, place} {
    const std::uint64_t block = in_.varint();
    miniblocks_ = in_.varint();
    count_ = in_.varint();
    last_ = static_cast<std::uint64_t>(in_.zigzag());
    const bool right = block >= 32 && block >> 31 == 0 && miniblocks_ > 0 && block % miniblocks_ == 0 &&
                       (numbers_ = block / miniblocks_) % 32 == 0 && count_ >> 31 == 0;
    if (!right) place.damaged("the head of its delta encoding is wrong");
    left_ = count_;
    miniblock_ = static_cast<std::size_t>(miniblocks_);
}

STRATA_INLINE void DeltaReader::next_miniblock() {
    if (miniblock_ == miniblocks_) {
        least_ = static_cast<std::uint64_t>(in_.zigzag());
        widths_ = in_.take(miniblocks_);
        miniblock_ = 0;
    }
    width_ = static_cast<unsigned>(widths_[miniblock_++]);
    if (width_ > 64) in_.place().damaged("its differences would have " + std::to_string(width_) + " bits");
    bit_ = in_.position() * 8;
    in_.take(numbers_ / 8 * width_);
    left_in_miniblock_ = numbers_;
}

STRATA_INLINE void DeltaReader::read(std::span<std::uint64_t> out) {
    if (out.size() > left_)
        in_.place().damaged("it has " + std::to_string(count_) + " delta encoded numbers, fewer than it needs");
    left_ -= out.size();
    for (std::uint64_t& number : out) {
        if (is_first_) {
            is_first_ = false;
        } else {
            if (left_in_miniblock_ == 0) next_miniblock();
            last_ += least_ + bits_at(bytes_, bit_, width_);
            bit_ += width_;
            --left_in_miniblock_;
        }
        number = last_;
    }
}

STRATA_INLINE std::size_t DeltaReader::end() const {
    DeltaReader walk = *this;  // before the first read: stands behind the head
    for (std::uint64_t left = count_ > 0 ? count_ - 1 : 0; left > 0; left -= std::min(left, numbers_))
        walk.next_miniblock();
    return walk.in_.position();
}

STRATA_INLINE LevelReader::LevelReader(std::span<const std::byte> bytes, unsigned most, bool is_bit_packed,
                                       const Place& place)
    : bytes_{bytes},
      most_{static_cast<std::uint8_t>(most)},
      width_{static_cast<unsigned>(std::bit_width(most))},
      is_bit_packed_{is_bit_packed},
      runs_{bytes, width_, place},
      place_{&place} {}

STRATA_INLINE std::size_t LevelReader::read(std::span<std::uint8_t> levels) {
    if (is_bit_packed_) {
        if (at_ + levels.size() * width_ > bytes_.size() * 8) place_->damaged("its levels end too early");
        for (std::uint8_t& level : levels) {
            unsigned bits = 0;
            for (unsigned i = 0; i < width_; ++i, ++at_)  // here the high bit of a byte is first
                bits =
                    bits << 1 | (static_cast<unsigned>(bytes_[static_cast<std::size_t>(at_ / 8)]) >> (7 - at_ % 8) & 1);
            level = static_cast<std::uint8_t>(bits);
        }
    } else {
        runs_.read(levels);
    }
    std::size_t highest = 0;
    for (const std::uint8_t level : levels) {
        if (level > most_) place_->damaged("it has a level of " + std::to_string(level) + ", above the highest");
        highest += level == most_ ? 1 : 0;
    }
    return highest;
}

}  // namespace strata::tables::detail::parquet
