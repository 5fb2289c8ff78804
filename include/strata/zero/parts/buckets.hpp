#pragma once
// strata/zero/parts/buckets.hpp - Buckets: the trained parameters of a model, and which elements of them are this rank's.
//
// Shapes: B  elements of a bucket with padding      S = B / world, a rank's share of it

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/state.hpp>

namespace strata::zero {

/// Parameters in order, each behind the one before in an array of their own. Local.
[[nodiscard]] std::vector<ParameterInfo> layout_of(const std::vector<Parameter>& parameters);

/// What a Setup's sharding policy says, for the parts that are no templates.
struct Sharded {
    bool state = false;       ///< masters and states: a rank has its share, else all
    bool gradients = false;   ///< a bucket's gradients are there only until they are reduced
    bool parameters = false;  ///< a unit's parameters are whole only while it computes
};

/// A parameter that is trained.
struct TrainedParameter {
    at::Tensor tensor;  ///< the model's own; a view of its bucket's weight_B
    std::size_t bucket = 0;
    std::int64_t offset = 0;  ///< in the bucket
    std::size_t group = 0;    ///< of its options
};

/// Parameters that are reduced and gathered together.
struct TrainedBucket {
    Bucket bucket;
    std::vector<std::int64_t> offsets;  ///< of its parameters, and its end
    bool sharded = false;               ///< its parameters are those of a unit that is whole only while it computes
    std::size_t shard = 0;              ///< then the number of its shard
    std::int32_t unit_number = -1;      ///< and of its unit, at UnitGathering
    at::Tensor weight_B;                ///< what its parameters are views of
};

/// The table of an engine: parameters, buckets, and the arithmetic of who owns what. No rank is asked anything.
class Buckets {
public:
    struct Options {
        std::int64_t bucket_numel = 0;
        bool replicates_state = false;  ///< every rank has the state of all elements
        bool shards_units = false;      ///< units are whole only while they compute
        int rank = 0;
        int world = 1;
    };
    Buckets() = default;
    /// group_of  the group of each parameter
    Buckets(const std::vector<Parameter>& trained, const std::vector<std::size_t>& group_of, const Options& options);

    [[nodiscard]] std::size_t size() const noexcept { return buckets_.size(); }
    /// Those before the first one whose parameters keep the other number format.
    [[nodiscard]] std::size_t unexcepted() const noexcept {
        return static_cast<std::size_t>(
            std::find_if(buckets_.begin(), buckets_.end(), [](const TrainedBucket& b) { return b.bucket.excepted; }) -
            buckets_.begin());
    }
    [[nodiscard]] bool excepted(std::size_t bucket) const noexcept { return buckets_[bucket].bucket.excepted; }
    [[nodiscard]] TrainedBucket& operator[](std::size_t i) noexcept { return buckets_[i]; }
    [[nodiscard]] const TrainedBucket& operator[](std::size_t i) const noexcept { return buckets_[i]; }
    [[nodiscard]] const std::vector<TrainedParameter>& parameters() const noexcept { return parameters_; }
    [[nodiscard]] const TrainedParameter& parameter(std::size_t i) const noexcept { return parameters_[i]; }
    /// Names and places, and elements in all, without padding.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const noexcept { return layout_; }
    [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
    [[nodiscard]] const std::string& name(std::size_t parameter) const noexcept { return layout_[parameter].name; }

    [[nodiscard]] int rank() const noexcept { return options_.rank; }
    [[nodiscard]] int world() const noexcept { return options_.world; }
    [[nodiscard]] bool replicates_state() const noexcept { return options_.replicates_state; }
    [[nodiscard]] bool shards_units() const noexcept { return options_.shards_units; }

    /// S, and B.
    [[nodiscard]] std::int64_t share_of(std::size_t bucket) const noexcept {
        return share_numel(buckets_[bucket].bucket.numel, options_.world);
    }
    [[nodiscard]] std::int64_t padded_of(std::size_t bucket) const noexcept {
        return share_of(bucket) * options_.world;
    }
    /// Elements of a bucket whose state is on this rank; 0 of a bucket that there is not.
    [[nodiscard]] std::int64_t part_of(std::size_t bucket) const noexcept {
        if (bucket >= buckets_.size()) return 0;
        return options_.replicates_state ? padded_of(bucket) : share_of(bucket);
    }
    /// Where element `begin` of that part is in the bucket.
    [[nodiscard]] std::int64_t place_in_bucket(std::size_t bucket, std::int64_t begin) const noexcept {
        return options_.replicates_state ? begin : share_of(bucket) * options_.rank + begin;
    }
    /// The rank's share of a bucket in the virtual array of all parameters, without padding.
    [[nodiscard]] ElementRun own(std::size_t bucket) const noexcept {
        return buckets_[bucket].bucket.share_of(options_.rank, options_.world);
    }
    /// The rank's share (S) of values (B).
    [[nodiscard]] at::Tensor own_share(const at::Tensor& all_B) const {
        const std::int64_t share = all_B.numel() / options_.world;
        return all_B.narrow(0, share * options_.rank, share);
    }

    /// Elements of this rank's share of every bucket, of its part, and of its shard of every bucket that is sharded.
    [[nodiscard]] std::vector<std::int64_t> share_numels() const;
    [[nodiscard]] std::vector<std::int64_t> part_numels() const;
    [[nodiscard]] std::vector<std::int64_t> shard_numels() const;

    /// Throws bad_parameter when a parameter is no longer the view that its bucket made it, or was frozen since.
    void check_parameters_stayed() const;
    /// Tells autograd that saved weights are stale: a graph kept across a step must fail, not compute with new values.
    void bump_versions();
    /// Of one bucket, whose new weights come inside of backward: a node of the graph that would still read the old ones fails.
    void bump_versions(std::size_t bucket) noexcept;
    /// Gives every parameter version numbers that no other tensor has, for some ten thousands of steps at least: libtorch's error
    /// about a node that fails has no name in it, but that number. Before a graph is recorded.
    void number_versions();
    /// The parameter that is at this version, after number_versions(); none: another tensor is.
    [[nodiscard]] std::optional<std::size_t> parameter_at(std::int64_t version) const noexcept;
    /// How often that was for all of them.
    [[nodiscard]] std::int64_t bumps() const noexcept { return bumps_; }

    /// A piece of a run, whose parameters are of one group.
    struct GroupPiece {
        std::size_t group = 0;
        std::int64_t begin = 0;  ///< in the run
        std::int64_t numel = 0;
    };
    /// The pieces of elements begin .. begin + numel - 1 of this rank's part of a bucket, in order. Padding goes with what
    /// is before it.
    [[nodiscard]] std::vector<GroupPiece> group_pieces(std::size_t bucket, std::int64_t begin,
                                                       std::int64_t numel) const;

    /// The piece of those elements that is a parameter's, in the run; numel 0 where there is none.
    [[nodiscard]] ElementRun parameter_piece(std::size_t parameter, std::int64_t begin, std::int64_t numel) const {
        const TrainedParameter& p = parameters_[parameter];
        const std::int64_t place = place_in_bucket(p.bucket, begin);
        const std::int64_t from = std::max(place, p.offset);
        const std::int64_t end = std::min(place + numel, p.offset + p.tensor.numel());
        return {from - place, std::max<std::int64_t>(0, end - from)};
    }

private:
    Options options_;
    std::vector<TrainedParameter> parameters_;
    std::vector<TrainedBucket> buckets_;
    std::vector<ParameterInfo> layout_;
    std::int64_t numel_ = 0;
    std::int64_t bumps_ = 0;
    static constexpr std::int64_t first_version = std::int64_t{1}
                                                  << 20;  // which nothing comes to by itself in one pass
};

/// This rank's share of every bucket, kind by kind; shares without elements are left out. Local.
[[nodiscard]] std::vector<StateOutline> outline_of(const std::vector<std::string_view>& kinds, const Buckets& buckets);

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/buckets.ipp>
#endif
