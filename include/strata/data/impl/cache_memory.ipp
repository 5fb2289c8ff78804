#pragma once
// strata/data/impl/cache_memory.ipp - tensors as the bytes of an entry, and back as views of them.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>

#include <strata/core/inline.hpp>
#include <strata/data/cache_memory.hpp>
#include <strata/data/impl/entry_slabs.ipp>

namespace strata::data {

namespace detail {

/// What stands in an entry for each tensor: this, its sizes, its name, and, aligned, its numbers. A last one has no name.
struct TensorRecord {
    std::uint64_t all_bytes;  // with this, a multiple of the alignment
    std::uint64_t numbers;    // where they begin, from here
    std::uint32_t name_bytes;
    std::uint16_t dimensions;
    std::int8_t type;  // at::ScalarType
    bool is_last;
};

inline TensorRecord record_of(const std::string& name, const at::Tensor& tensor, bool is_last) {
    const auto dimensions = static_cast<std::size_t>(tensor.dim());
    const std::size_t numbers =
        up_to_multiple(sizeof(TensorRecord) + dimensions * sizeof(std::int64_t) + name.size(), EntrySlabs::alignment);
    return {up_to_multiple(numbers + tensor.nbytes(), EntrySlabs::alignment),
            numbers,
            static_cast<std::uint32_t>(name.size()),
            static_cast<std::uint16_t>(dimensions),
            static_cast<std::int8_t>(tensor.scalar_type()),
            is_last};
}

}  // namespace detail

STRATA_INLINE std::optional<CacheMemory::Tensors> CacheMemory::find(const std::string& identity) const {
    if (!keeps_) return std::nullopt;
    const detail::EntrySlabs::Held held = slabs_->find(identity);
    if (held == nullptr) return std::nullopt;
    Tensors tensors;
    for (std::byte* at = held.get();;) {
        detail::TensorRecord record{};
        std::memcpy(&record, at, sizeof record);
        std::vector<std::int64_t> sizes(record.dimensions);
        const std::byte* const behind = at + sizeof record;
        if (record.dimensions > 0) std::memcpy(sizes.data(), behind, sizes.size() * sizeof(std::int64_t));
        if (record.name_bytes == 0 && record.numbers == 0) break;  // an entry without tensors
        const std::byte* const name = behind + sizes.size() * sizeof(std::int64_t);
        tensors.emplace_hint(tensors.end(), std::string{reinterpret_cast<const char*>(name), record.name_bytes},
                             at::from_blob(
                                 at + record.numbers, sizes, [held](void*) {},
                                 at::TensorOptions{static_cast<at::ScalarType>(record.type)}));
        if (record.is_last) break;
        at += record.all_bytes;
    }
    return tensors;
}

STRATA_INLINE void CacheMemory::keep(const std::string& identity, const Tensors& tensors) {
    if (!keeps_) {
        full_ = true;
        return;
    }
    std::vector<std::pair<detail::TensorRecord, at::Tensor>> parts;
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : tensors) {
        parts.emplace_back(detail::record_of(name, tensor, parts.size() + 1 == tensors.size()),
                           tensor.detach().cpu().contiguous());
        bytes += parts.back().first.all_bytes;
    }
    const auto fill = [&](std::span<std::byte> out) {
        if (parts.empty()) std::memset(out.data(), 0, out.size());
        std::byte* at = out.data();
        auto part = parts.begin();
        for (const auto& [name, tensor] : tensors) {
            const auto& [record, whole] = *part++;
            std::memcpy(at, &record, sizeof record);
            const std::size_t sizes = record.dimensions * sizeof(std::int64_t);
            if (sizes > 0) std::memcpy(at + sizeof record, whole.sizes().data(), sizes);
            if (!name.empty()) std::memcpy(at + sizeof record + sizes, name.data(), name.size());
            if (whole.nbytes() > 0) std::memcpy(at + record.numbers, whole.data_ptr(), whole.nbytes());
            at += record.all_bytes;
        }
    };
    if (slabs_->add(identity, std::max(bytes, sizeof(detail::TensorRecord)), fill) ==
        detail::EntrySlabs::Kept::does_not_fit)
        full_ = true;
}

STRATA_INLINE void CacheMemory::drop(const std::string& identity) {
    if (slabs_->drop(identity)) full_ = false;
}

STRATA_INLINE bool CacheMemory::is_full() const { return full_; }

STRATA_INLINE std::int64_t CacheMemory::bytes() const { return slabs_->bytes(); }

}  // namespace strata::data
