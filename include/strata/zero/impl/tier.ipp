#pragma once
// strata/zero/impl/tier.ipp - what a tier is lent: its options have functions and texts in them, which nobody copies inline.

#include <strata/zero/tier.hpp>

namespace strata::zero {

STRATA_INLINE TierContext::TierContext(detail::BufferPool& pool, const offload::SwapFolder* folder, std::string name,
                                       MemoryKind kind, offload::PipelineOptions windows)
    : pool_{&pool}, folder_{folder}, name_{std::move(name)}, kind_{kind}, windows_{std::move(windows)} {}

STRATA_INLINE TierContext::TierContext(const TierContext&) = default;
STRATA_INLINE TierContext::TierContext(TierContext&&) noexcept = default;
STRATA_INLINE TierContext& TierContext::operator=(const TierContext&) = default;
STRATA_INLINE TierContext& TierContext::operator=(TierContext&&) noexcept = default;
STRATA_INLINE TierContext::~TierContext() = default;

STRATA_INLINE TierContext TierContext::part(std::string_view name, std::size_t sharers) const {
    TierContext context = *this;
    context.name_ += "." + std::string{name};
    context.windows_.budget_bytes /= sharers;
    return context;
}

}  // namespace strata::zero
