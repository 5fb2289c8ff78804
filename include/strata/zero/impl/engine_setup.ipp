#pragma once
// strata/zero/impl/engine_setup.ipp - a model's parameters become buckets, shards and state.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
Engine<Setup, Comm, Compute>::Engine(Comm& comm, std::vector<Parameter> parameters, Options options, Compute compute)
    : comm_{comm},
      compute_{std::move(compute)},
      options_{detail::checked(std::move(options))},
      loss_scale_{options_.loss_scale},
      channel_{comm, compute_} {
    const at::NoGradGuard no_grad;
    for (const ParameterGroup<Rule>& group : options_.groups) {
        for (std::size_t k = 0; k < states; ++k) {
            if (optim::initial_state<Rule>(group.update, k) == optim::initial_state<Rule>(options_.update, k)) continue;
            throw Error{Errc::bad_value,
                        "a parameter group starts the state " + std::string{Rule::state_names[k]} +
                            " with another value than the other parameters",
                        "give every group the same initial value"};
        }
        groups_.push_back({group.lr_factor, group.update});
    }
    groups_.push_back({1.0, options_.update});
    std::vector<std::size_t> group_of;
    for (const Parameter& parameter : parameters) {
        const auto takes = [&](const ParameterGroup<Rule>& group) { return group.takes && group.takes(parameter.name); };
        const auto found = std::find_if(options_.groups.begin(), options_.groups.end(), takes);
        group_of.push_back(static_cast<std::size_t>(found - options_.groups.begin()));
    }
    std::string same = "bucket_numel " + std::to_string(options_.bucket_numel) + ", gradient_accumulation_steps " +
                       std::to_string(options_.gradient_accumulation_steps);
    if constexpr (stage == 3) {
        same += ", prefetch_bucket_bytes " + std::to_string(options_.prefetch_bucket_bytes) + ", max_live_parameters " +
                std::to_string(options_.max_live_parameters);
    }
    detail::check_same_model(comm_.all_gather_varied(detail::describe(parameters, group_of, same)));

    std::map<std::string, std::size_t> group_by_name;
    for (std::size_t i = 0; i < parameters.size(); ++i) group_by_name[parameters[i].name] = group_of[i];
    std::vector<Parameter> frozen = std::move(parameters);
    const std::vector<Parameter> trained = detail::split_off_frozen(frozen, compute_.device());
    for (const Parameter& parameter : trained) {
        layout_.push_back({parameter.name, parameter.tensor.sizes().vec(), numel_});
        numel_ += parameter.tensor.numel();
        parameters_.push_back({parameter.tensor, 0, 0, group_by_name[parameter.name]});
    }
    plan_buckets(trained);
    require_memory(frozen);
    start(trained, frozen);

    // Last: set_data() to another dtype gives a tensor a new accumulator.
    std::vector<at::Tensor> tensors;
    for (const TrainedParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
    hooks_ = std::make_unique<detail::GradientHooks>(tensors, [this](std::size_t index) { gradient_arrived(index); });
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::plan_buckets(const std::vector<Parameter>& trained) {
    std::vector<ParameterExtent> extents;
    bool units = false;
    for (const Parameter& parameter : trained) {
        extents.push_back({parameter.tensor.numel(), parameter.unit});
        units = units || parameter.unit >= 0;
    }
    if (stage == 3 && !units) {
        throw Error{Errc::bad_parameter, "ZeroStage<3> shards the parameters of units, and this model has no unit to train",
                    "hold its blocks as std::shared_ptr<strata::Unit<Block>>, or use ZeroStage<2>"};
    }
    sharded_ = stage == 3 && (Shards::gathers_alone || comm_.world() > 1);
    for (const Bucket& bucket : make_buckets(extents, options_.bucket_numel)) {
        BucketState& b = buckets_.emplace_back();
        b.bucket = bucket;
        b.sharded = sharded_ && bucket.unit >= 0;
        for (std::size_t i = bucket.first_parameter; i < bucket.first_parameter + bucket.parameter_count; ++i) {
            parameters_[i].bucket = buckets_.size() - 1;
            parameters_[i].offset = layout_[i].begin - bucket.begin;
            b.offsets.push_back(parameters_[i].offset);
        }
        b.offsets.push_back(bucket.numel);
    }
}

/// Elements of this rank's part of every bucket.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
std::vector<std::int64_t> Engine<Setup, Comm, Compute>::state_numels() const {
    std::vector<std::int64_t> numels;
    for (std::size_t i = 0; i < buckets_.size(); ++i) numels.push_back(part_numel(i));
    return numels;
}

/// Elements of this rank's shards: of buckets that are sharded, then of the frozen parameters of units.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
std::vector<std::int64_t> Engine<Setup, Comm, Compute>::shard_numels(const std::vector<Parameter>& frozen) const {
    std::vector<std::int64_t> numels;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        if (buckets_[i].sharded) numels.push_back(share_of(i));
    }
    std::map<std::int32_t, std::int64_t> units;
    for (const Parameter& parameter : frozen) {
        if (shards_frozen(parameter)) units[parameter.unit] += parameter.tensor.numel();
    }
    for (const auto& [unit, numel] : units) numels.push_back(share_numel(numel, comm_.world()));
    return numels;
}

/// Compares what is going to be allocated with what this node and the device have free, before any of it is.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::require_memory(const std::vector<Parameter>& frozen) const {
    const auto summed = static_cast<std::int64_t>(accumulates() ? sizeof(float) : sizeof(Collected));
    std::array<std::int64_t, 2> bytes{};  // by side
    const auto on = [&](Side side) -> std::int64_t& { return bytes[static_cast<std::size_t>(side)]; };
    const auto of_side = [](const PlaceBytes& kept, Side side) {
        std::int64_t sum = 0;
        for (const Place place : {Place::device, Place::host}) sum += side_of(place) == side ? kept[place] : 0;
        return sum;
    };
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const std::int64_t all = padded_of(i);
        const std::int64_t share = share_of(i);
        if (!buckets_[i].sharded) on(device_side) += all * static_cast<std::int64_t>(sizeof(Element));
        on(device_side) += stage < 2 ? all * static_cast<std::int64_t>(sizeof(Collected)) + (accumulates() ? share * summed : 0)
                                     : share * summed;
        if (averages) on(average_side) += share * static_cast<std::int64_t>(sizeof(float));
        largest = std::max(largest, all);
    }
    const PlaceBytes state = State::bytes(state_numels());
    const PlaceBytes trained_shards = Shards::bytes(shard_numels({}));
    // Beside them: a bucket's values in fp32 while it is taken over; later gradients on their way, and whole units.
    const std::size_t waiting = comm_.world() == 1 ? 1 : sharded_ ? 2 : static_cast<std::size_t>(options_.buckets_in_flight) + 1;
    const std::size_t in_use = (stage >= 2 ? waiting * sizeof(Collected) : 0) + (sharded_ ? 2 * sizeof(Element) : 0);
    on(device_side) += largest * static_cast<std::int64_t>(std::max(sizeof(float), in_use));
    const auto given_back = [&](const at::Tensor& tensor, Side side) {
        const bool here = Compute::is_host || (tensor.is_cpu() ? Side::host : Side::device) == side;
        return here ? detail::own_bytes(tensor) : 0;
    };
    for (const TrainedParameter& p : parameters_) {
        on(device_side) -= given_back(p.tensor, device_side);
        if (device_side != Side::host) on(Side::host) -= given_back(p.tensor, Side::host);
    }
    const PlaceBytes frozen_shards = Shards::bytes(shard_numels(frozen)) - trained_shards;
    for (const Side side : {Side::host, Side::device}) {
        on(side) += of_side(state, side) + of_side(trained_shards, side);
        std::int64_t shards_need = of_side(frozen_shards, side);
        for (const Parameter& p : frozen) {
            const auto size = static_cast<std::int64_t>(p.tensor.is_floating_point() ? sizeof(Element) : p.tensor.element_size());
            // Given back only when all of the above is there: it makes room for its shard, or itself, and for nothing else.
            if (shards_frozen(p)) {
                shards_need -= std::min(share_numel(p.tensor.numel(), comm_.world()) * size, given_back(p.tensor, side));
            } else if (side == device_side) {
                on(side) += std::max<std::int64_t>(0, p.tensor.numel() * size - given_back(p.tensor, side));
            }
        }
        on(side) += std::max<std::int64_t>(0, shards_need);
    }
    const std::string fix = state[Place::disk] > 0 && state.in_memory() == 0 ? "use more ranks, or a smaller model"
                            : stage < 3
                                ? "shard more with a higher ZeroStage, keep state on disk with OffloadTarget<Nvme>, or use more nodes"
                                : "keep state on disk with OffloadTarget<Nvme, OptimizerState, Parameters>, or use more nodes";
    const auto needed = [&](Side side) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, on(side))); };
    detail::require_node_memory(comm_.all_gather_varied(detail::memory_need(needed(Side::host))), fix);
    if constexpr (!Compute::is_host) {
        compute_.release_cached();
        comm::agree(comm_, [&] {
            detail::require_device_memory(compute_.device(), needed(Side::device), compute_.free_memory(), fix);
        });
    }
}

/// Elements of a model that are taken over between two returns of its memory to the system.
inline constexpr std::int64_t trimmed_numel = std::int64_t{8} << 20;

/// Files first, then bucket by bucket: values, shards, master, states. What fails on one rank does so on all.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::start(const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen) {
    const std::vector<FrozenUnit> frozen_units = take_frozen(frozen);
    std::size_t frozen_shards = 0;
    for (BucketState& b : buckets_) {
        if (b.sharded) b.shard = frozen_shards++;
    }
    folder_.agree_on_name(comm_);
    comm::agree(comm_, [&] {
        folder_.open(options_.nvme_path, comm_.rank(), options_.nvme_lock_timeout);
        const auto context = [&](const char* name, offload::PipelineOptions windows) {
            if (!windows.pinning.pin) windows.pinning = compute_.pinning();
            return TierContext{*pool_, folder_.get(), name, std::move(windows)};
        };
        state_.make(context("optimizer", options_.nvme), state_numels());
        shards_.make(context("parameters", options_.nvme_units), shard_numels(frozen));
    });

    std::array<float, states> initial{};
    for (std::size_t k = 0; k < states; ++k) initial[k] = optim::initial_state<Rule>(options_.update, k);
    std::size_t taken = 0;
    std::int64_t untrimmed = 0;  // elements that the model has given back
    failure_.keep([&] {
        state_.fill(initial, [&](std::size_t bucket) {
            taken = bucket + 1;
            const at::Tensor values = take_bucket(bucket, trained);
            untrimmed += padded_of(bucket);
            if (untrimmed >= trimmed_numel) {
                pool_->trim();
                untrimmed = 0;
            }
            return values;
        });
    });
    // After a failure the values of the other buckets are still exchanged: the other ranks wait for that.
    while (taken < buckets_.size()) failure_.keep([&] { take_bucket(taken++, trained); });
    std::vector<typename Gathering::Flat> frozen_flats;
    for (std::size_t i = 0; i < frozen_units.size(); ++i) {
        failure_.keep([&] { frozen_flats.push_back({take_frozen_unit(frozen_units[i], frozen_shards + i), frozen_shards + i}); });
    }
    failure_.tell(comm_);
    if constexpr (has_keeper) keep_units(trained, frozen, frozen_units, frozen_flats);
    pool_->trim();
    if constexpr (!Compute::is_host) compute_.release_cached();
}

/// Gives a bucket's parameters their place and returns what the store starts its masters with: fp32.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
at::Tensor Engine<Setup, Comm, Compute>::take_bucket(std::size_t index, const std::vector<Parameter>& trained) {
    BucketState& b = buckets_[index];
    const std::int64_t padded = padded_of(index);
    const at::Tensor values_B = pool_->zeros(padded, at::kFloat, Held::buffers, Place::device);
    const std::size_t first = b.bucket.first_parameter;
    for (std::size_t i = first; i < first + b.bucket.parameter_count; ++i) {
        const at::Tensor& tensor = trained[i].tensor;
        values_B.narrow(0, parameters_[i].offset, tensor.numel()).view(tensor.sizes()).copy_(tensor.detach());
    }
    exchange_.broadcast(values_B);

    b.weight_B = pool_->empty(padded, dtype, b.sharded ? Held::gathered : Held::parameters, Place::device);
    b.weight_B.copy_(values_B);
    for (std::size_t i = first; i < first + b.bucket.parameter_count; ++i) {
        at::Tensor tensor = trained[i].tensor;
        tensor.mutable_grad().reset();
        tensor.set_data(b.weight_B.narrow(0, parameters_[i].offset, tensor.numel()).view(tensor.sizes()));
    }
    const at::Tensor share_S = own_share(values_B);
    if constexpr (averages) {
        b.average_S = pool_->empty(share_S.numel(), at::kFloat, Held::state, average_place);
        b.average_S.copy_(has_master ? share_S : own_share(b.weight_B));  // of the weights as they are kept
    }
    if constexpr (stage < 2) b.gradient_B = pool_->zeros(padded, detail::dtype_v<Collected>, Held::gradients, Place::device);
    b.gradient_S = stage < 2 && !accumulates()
                       ? own_share(b.gradient_B)
                       : pool_->zeros(share_S.numel(), accumulates() ? at::kFloat : detail::dtype_v<Collected>,
                                      Held::gradients, Place::device);
    if (b.sharded) {
        fill_shard(b.shard, own_share(b.weight_B));
        detail::drop_memory(b.weight_B);
    }
    const bool moves = side_of(State::memory) != device_side;
    if (!moves && (replicated || comm_.world() == 1)) return values_B;
    const at::Tensor& kept = replicated ? values_B : share_S;
    const at::Tensor copy = pool_->empty(kept.numel(), at::kFloat, Held::buffers, moves ? Place::host : Place::device);
    return copy.copy_(kept);  // lets values_B go
}

/// Converts frozen parameters and gives them rank 0's values; returns those that are sharded, by unit.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
auto Engine<Setup, Comm, Compute>::take_frozen(const std::vector<Parameter>& frozen) -> std::vector<FrozenUnit> {
    std::map<std::int32_t, FrozenUnit> units;
    for (const Parameter& parameter : frozen) {
        if (shards_frozen(parameter)) {
            FrozenUnit& unit = units[parameter.unit];
            unit.unit = parameter.unit;
            unit.tensors.push_back(parameter.tensor);
            unit.numel += parameter.tensor.numel();
            continue;
        }
        const at::Tensor values = detail::converted_frozen(parameter.tensor, dtype, compute_.device());
        exchange_.broadcast(values);
        at::Tensor{parameter.tensor}.set_data(values);
    }
    std::vector<FrozenUnit> found;
    for (auto& [number, unit] : units) found.push_back(std::move(unit));
    return found;
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
at::Tensor Engine<Setup, Comm, Compute>::take_frozen_unit(const FrozenUnit& unit, std::size_t shard) {
    const std::int64_t padded = share_numel(unit.numel, comm_.world()) * comm_.world();
    at::Tensor all_B = pool_->zeros(padded, dtype, Held::gathered, Place::device);
    std::int64_t at = 0;
    for (const at::Tensor& tensor : unit.tensors) {
        all_B.narrow(0, at, tensor.numel()).view(tensor.sizes()).copy_(tensor.detach());
        at += tensor.numel();
    }
    exchange_.broadcast(all_B);
    at = 0;
    for (at::Tensor tensor : unit.tensors) {
        tensor.set_data(all_B.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
    fill_shard(shard, own_share(all_B));
    detail::drop_memory(all_B);
    return all_B;
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::fill_shard(std::size_t shard, const at::Tensor& values_S) {
    const std::span<Element> kept = shards_.open(shard, offload::Access::write);
    detail::tensor_over(kept, device_of(side_of_shard(shard))).copy_(values_S);
    shards_.close(shard, offload::Access::write);
}

/// Makes the keeper of the model's units and hands them to it in registration order.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::keep_units(const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen,
                                     const std::vector<FrozenUnit>& frozen_units,
                                     const std::vector<typename Gathering::Flat>& frozen_flats) {
    struct KeptUnit {
        std::shared_ptr<UnitLink> link;
        std::vector<typename Gathering::Flat> flats;
        std::size_t trained = 0;
        std::vector<std::size_t> buckets;
        std::vector<const void*> tensors;
    };
    std::map<std::int32_t, KeptUnit> units;
    for (const std::vector<Parameter>* group : {&trained, &frozen}) {
        for (const Parameter& parameter : *group) {
            if (parameter.unit < 0) continue;
            KeptUnit& unit = units[parameter.unit];
            unit.link = parameter.link;
            unit.trained += group == &trained ? 1 : 0;
            unit.tensors.push_back(parameter.tensor.unsafeGetTensorImpl());
        }
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        if (!buckets_[i].sharded) continue;
        units[buckets_[i].bucket.unit].buckets.push_back(i);
        typename Gathering::Flat flat{buckets_[i].weight_B, buckets_[i].shard};
        const Bucket& bucket = buckets_[i].bucket;
        for (std::size_t p = 0; p < bucket.parameter_count; ++p) {
            flat.parameters.push_back(parameters_[bucket.first_parameter + p].tensor);
        }
        units[bucket.unit].flats.push_back(std::move(flat));
    }
    for (std::size_t i = 0; i < frozen_units.size(); ++i) {
        typename Gathering::Flat flat = frozen_flats[i];
        flat.parameters = frozen_units[i].tensors;
        flat.frozen = true;
        units[frozen_units[i].unit].flats.push_back(std::move(flat));
    }

    const auto recomputed = [](std::int32_t unit, std::int32_t of) -> bool { return Setup::recompute::recomputes(unit, of); };
    gathering_ = std::make_unique<Gathering>(
        exchange_, channel_, shards_, *pool_,
        detail::GatheringOptions{.gathers = sharded_,
                                 .recomputes = recomputes ? +recomputed : nullptr,
                                 .prefetch_bytes = options_.prefetch_bucket_bytes,
                                 .max_live_numel = options_.max_live_parameters},
        [this](std::size_t bucket) { reduce(buckets_[bucket], accumulates() && micro_batch_ > 0); });
    gathering_->set_buckets(sharded_ ? buckets_.size() : 0);
    std::int32_t number = 0;
    for (auto& [unit, kept] : units) {
        for (const std::size_t bucket : kept.buckets) buckets_[bucket].kept_unit = number;
        for (const void* tensor : kept.tensors) unit_of_[tensor] = number;
        gathering_->add(kept.link, std::move(kept.flats), kept.trained);
        ++number;
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::check_parameters_stayed() const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const TrainedParameter& p = parameters_[i];
        if (!p.tensor.storage().is_alias_of(buckets_[p.bucket].weight_B.storage()) ||
            p.tensor.storage_offset() != p.offset) {
            throw Error{Errc::bad_parameter,
                        "the parameter " + layout_[i].name + " was converted or moved after the engine had taken it",
                        "call model->to(...) before the trainer is made"};
        }
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::hold_unit_of(const at::Tensor& parameter) {
    if (!gathers()) return;
    const auto found = unit_of_.find(parameter.unsafeGetTensorImpl());
    if (found == unit_of_.end()) return;
    gathering_->hold_only(found->second);
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::drop_units() {
    if (gathers()) gathering_->drop_all();
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Body>
void Engine<Setup, Comm, Compute>::with_whole_model(Body&& body) {
    if (!gathers()) return static_cast<void>(body());
    gathering_->hold_all(true);
    try {
        body();
    } catch (...) {
        gathering_->hold_all(false);
        throw;
    }
    gathering_->hold_all(false);
}

}  // namespace strata::zero
