#pragma once
// strata/optim/detail/device_layerwise.hpp - bodies of the two passes of a layerwise rule on a GPU.
//
// Segments travel in the argument of a kernel, a table at a time: nothing is allocated or uploaded for them.

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <strata/core/host_device.hpp>
#include <strata/optim/detail/device_bodies.hpp>
#include <strata/optim/detail/device_sums.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim::detail {

/// Segments that one launch works on: few enough for the argument of a kernel, 4 KiB. Which blocks work on which.
struct SegmentTable {
    static constexpr int most = 96;
    struct Entry {
        std::int64_t begin;
        std::int64_t numel;
        std::int64_t first_block;
        std::uint32_t parameter;
        float ratio;
    };
    Entry entries[most]{};
    std::int32_t size = 0;

    [[nodiscard]] STRATA_HOST_DEVICE const Entry& of(std::int64_t block) const noexcept {
        std::int32_t first = 0;
        for (std::int32_t end = size; end - first > 1;) {
            const std::int32_t middle = (first + end) / 2;
            (entries[middle].first_block <= block ? first : end) = middle;
        }
        return entries[first];
    }
};

/// Calls call(table, blocks) for the segments in order, as many at a time as a table holds.
///
///   blocks_of  how many blocks work on a segment
///   ratios     of parameters, or empty
template <class BlocksOf, class Call>
void for_tables(std::span<const Segment> segments, std::span<const float> ratios, const BlocksOf& blocks_of,
                const Call& call) {
    SegmentTable table;
    std::int64_t blocks = 0;
    const auto flush = [&] {
        if (table.size > 0) call(std::as_const(table), blocks);
        table.size = 0;
        blocks = 0;
    };
    for (const Segment& segment : segments) {
        if (segment.numel == 0) continue;
        table.entries[table.size++] = {segment.begin, segment.numel, blocks,
                                       static_cast<std::uint32_t>(segment.parameter),
                                       ratios.empty() ? 1.0F : ratios[segment.parameter]};
        blocks += blocks_of(segment);
        if (table.size == SegmentTable::most) flush();
    }
    flush();
}

/// Chunks of a segment, cut as advance() cuts them.
template <KeptElement W>
constexpr std::int64_t chunks_of(const Segment& segment, const StochasticRounding& rounding) noexcept {
    return (chunk_phase<W>(segment, rounding) % chunk_numel + segment.numel + chunk_numel - 1) / chunk_numel;
}

/// optim::advance() of chunks.
template <LayerwiseRule Rule, GradientElement G, KeptElement W>
struct AdvanceFill {
    static constexpr int sums = 2;
    static constexpr int count = 16 / sizeof(W);
    static constexpr int tile_numel = lane_sum_fillers * count;
    static constexpr std::size_t states = state_count_v<Rule>;

    typename Rule::Scalars scalars;
    GradientTransform transform;
    StochasticRounding rounding;
    SegmentTable table;
    const G* gradient;
    const W* weight;
    W* state[states + 1];
    NormSquares* partial;  // one a block
    std::int32_t lead;     // of the run
    bool gradient_in_packs;
    bool state_in_packs;

    [[nodiscard]] STRATA_HOST_DEVICE ChunkPlace chunk(std::int64_t block) const noexcept {
        const SegmentTable::Entry& entry = table.of(block);
        const std::int64_t phase = std::same_as<W, float> ? 0 : (rounding.first_element + entry.begin) % chunk_numel;
        const std::int64_t cut = (block - entry.first_block) * chunk_numel - phase;  // in the segment
        const std::int64_t from = cut < 0 ? 0 : cut;
        const std::int64_t to = cut + chunk_numel < entry.numel ? cut + chunk_numel : entry.numel;
        const std::int64_t begin = entry.begin + from;
        return {begin, to - from, static_cast<std::int32_t>((lead + begin) % count), random_at<W>(rounding, begin),
                block};
    }
    [[gnu::always_inline]] STRATA_HOST_DEVICE void fill(const ChunkPlace& chunk, std::int64_t origin,
                                                        std::int32_t thread,
                                                        float (&tile)[sums][tile_numel + 16]) const {
        const std::int32_t place = thread * count;
        const std::int64_t at = origin + place;
        if (at >= 0 && at + count <= chunk.numel) {
            whole(chunk, at, tile[0] + place, tile[1] + place);
        } else {
            for (int i = 0; i < count; ++i) {
                if (at + i < 0 || at + i >= chunk.numel) continue;
                const NormTerms terms =
                    advance_element<Rule>(scalars, transform, chunk.random.random, index(chunk, at + i), gradient,
                                          weight, state, chunk.begin + at + i);
                tile[0][place + i] = terms.weight;
                tile[1][place + i] = terms.direction;
            }
        }
    }
    STRATA_HOST_DEVICE void finish(const ChunkPlace& chunk, const double* lane_sums) const {
        partial[chunk.result] = {add_in_order(0.0, lane_sums, 16), add_in_order(0.0, lane_sums + 16, 16)};
    }

private:
    [[gnu::always_inline]] STRATA_HOST_DEVICE void whole(const ChunkPlace& chunk, std::int64_t at, float* weights_to,
                                                         float* directions_to) const {
        G g[count];
        W w[count];
        W s[states + 1][count];
        float weights[count];
        float directions[count];
        W* pointers[states + 1];
        read(g, gradient + chunk.begin + at, gradient_in_packs);
        read(w, weight + chunk.begin + at, true);
        for (std::size_t k = 0; k < states; ++k) {
            read(s[k], state[k] + chunk.begin + at, state_in_packs);
            pointers[k] = s[k];
        }
        for (int i = 0; i < count; ++i) {
            const NormTerms terms =
                advance_element<Rule>(scalars, transform, chunk.random.random, index(chunk, at + i), g, w, pointers, i);
            weights[i] = terms.weight;
            directions[i] = terms.direction;
        }
        for (std::size_t k = 0; k < states; ++k) write(state[k] + chunk.begin + at, s[k], state_in_packs);
        write(weights_to, weights, true);
        write(directions_to, directions, true);
    }
    [[gnu::always_inline]] STRATA_HOST_DEVICE static std::uint32_t index(const ChunkPlace& chunk, std::int64_t at) {
        return chunk.random.index + static_cast<std::uint32_t>(at);
    }
};

/// Adds blocks' sums to the norms: a thread for each parameter of the table, its segments and their chunks in order.
struct NormTotals {
    static constexpr int threads = SegmentTable::most;
    SegmentTable table;
    std::int64_t blocks;
    const NormSquares* partial;
    NormSquares* norms;

    STRATA_HOST_DEVICE void operator()(std::int64_t, std::int32_t thread) const {
        if (thread >= table.size) return;
        const std::uint32_t parameter = table.entries[thread].parameter;
        for (std::int32_t i = 0; i < thread; ++i) {
            if (table.entries[i].parameter == parameter) return;
        }
        NormSquares total = norms[parameter];
        for (std::int32_t i = thread; i < table.size; ++i) {
            if (table.entries[i].parameter != parameter) continue;
            const std::int64_t first = table.entries[i].first_block;
            const std::int64_t end = i + 1 < table.size ? table.entries[i + 1].first_block : blocks;
            total = add_in_order(total, partial + first, end - first);
        }
        norms[parameter] = total;
    }
};

/// optim::apply_direction() of one group.
template <LayerwiseRule Rule, bool with_copy, KeptElement W, CopyElement C>
struct ApplyBody {
    static constexpr int threads = 256;
    static constexpr int count = 16 / sizeof(W);
    static constexpr std::size_t states = state_count_v<Rule>;

    typename Rule::Scalars scalars;
    StochasticRounding rounding;
    SegmentTable table;
    W* weight;
    const W* state[states + 1];
    C* copy;
    std::int32_t lead;
    bool state_in_packs;
    bool copy_in_packs;

    [[gnu::always_inline]] STRATA_HOST_DEVICE void operator()(std::int64_t block, std::int32_t thread) const {
        const SegmentTable::Entry& entry = table.of(block);
        const Groups<count> groups{entry.begin, entry.numel, lead};
        const Group group = groups[(block - entry.first_block) * threads + thread];
        const RandomPlace place = random_at<W>(rounding, group.from);
        if (group.to - group.from == count && place.index + count <= chunk_numel) {
            whole(group.from, place, entry.ratio);
        } else {
            for (std::int64_t i = group.from; i < group.to; ++i) {
                const RandomPlace own = random_at<W>(rounding, i);
                apply_element<Rule, with_copy>(scalars, entry.ratio, own.random, own.index, weight, state, copy, i);
            }
        }
    }

private:
    [[gnu::always_inline]] STRATA_HOST_DEVICE void whole(std::int64_t at, const RandomPlace& place, float ratio) const {
        W w[count];
        W s[states + 1][count];
        [[maybe_unused]] C c[count];
        const W* pointers[states + 1];
        read(w, weight + at, true);
        for (std::size_t k = 0; k < states; ++k) {
            read(s[k], state[k] + at, state_in_packs);
            pointers[k] = s[k];
        }
        for (int i = 0; i < count; ++i) {
            apply_element<Rule, with_copy>(scalars, ratio, place.random, place.index + static_cast<std::uint32_t>(i), w,
                                           pointers, c, i);
        }
        write(weight + at, w, true);
        if constexpr (with_copy) write(copy + at, c, copy_in_packs);
    }
};

/// Calls launch(body, blocks) for optim::advance().
template <LayerwiseRule Rule, GradientElement G, KeptElement W, class Launch>
void launch_advance(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                    std::span<const G> gradient, std::span<const W> weight,
                    const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                    std::span<NormSquares> partial, std::span<NormSquares> norms, const StochasticRounding& rounding,
                    Launch&& launch) {
    using Fill = AdvanceFill<Rule, G, W>;
    assert(gradient.size() == weight.size());
    const std::int32_t lead = lead_of(weight.data());
    LaneSums<Fill> body{{.scalars = scalars,
                         .transform = transform,
                         .rounding = rounding,
                         .table = {},
                         .gradient = gradient.data(),
                         .weight = weight.data(),
                         .state = {},
                         .partial = partial.data(),
                         .lead = lead,
                         .gradient_in_packs = in_packs<Fill::count>(gradient.data(), lead),
                         .state_in_packs = true}};
    for (std::size_t k = 0; k < state_count_v<Rule>; ++k) {
        assert(state[k].size() == weight.size());
        body.fill.state[k] = state[k].data();
        body.fill.state_in_packs = body.fill.state_in_packs && in_packs<Fill::count>(state[k].data(), lead);
    }
    const auto blocks_of = [&](const Segment& segment) { return chunks_of<W>(segment, rounding); };
    for_tables(segments, {}, blocks_of, [&](const SegmentTable& table, std::int64_t blocks) {
        assert(blocks <= static_cast<std::int64_t>(partial.size()));
        body.fill.table = table;
        launch(std::as_const(body), blocks);
        launch(NormTotals{table, blocks, partial.data(), norms.data()}, std::int64_t{1});
    });
}

/// The same for optim::apply_direction().
template <LayerwiseRule Rule, bool with_copy, KeptElement W, CopyElement C, class Launch>
void launch_apply_direction(const typename Rule::Scalars& scalars, std::span<W> weight,
                            const std::array<std::span<W>, state_count_v<Rule>>& state,
                            std::span<const Segment> segments, std::span<const float> ratios, std::span<C> copy,
                            const StochasticRounding& rounding, Launch&& launch) {
    using Body = ApplyBody<Rule, with_copy, W, C>;
    assert(!with_copy || copy.size() == weight.size());
    const std::int32_t lead = lead_of(weight.data());
    Body body{.scalars = scalars,
              .rounding = rounding,
              .table = {},
              .weight = weight.data(),
              .state = {},
              .copy = copy.data(),
              .lead = lead,
              .state_in_packs = true,
              .copy_in_packs = in_packs<Body::count>(copy.data(), lead)};
    for (std::size_t k = 0; k < state_count_v<Rule>; ++k) {
        assert(state[k].size() == weight.size());
        body.state[k] = state[k].data();
        body.state_in_packs = body.state_in_packs && in_packs<Body::count>(state[k].data(), lead);
    }
    const auto blocks_of = [&](const Segment& segment) {
        return blocks_for(Groups<Body::count>{segment.begin, segment.numel, lead}.size(), Body::threads);
    };
    for_tables(segments, ratios, blocks_of, [&](const SegmentTable& table, std::int64_t blocks) {
        body.table = table;
        launch(std::as_const(body), blocks);
    });
}

}  // namespace strata::optim::detail
