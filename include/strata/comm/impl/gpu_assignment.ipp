#pragma once
// strata/comm/impl/gpu_assignment.ipp - told ranks first, then the first GPU of each list that is free.

#include <cstddef>
#include <map>
#include <utility>

#include <strata/comm/gpu_assignment.hpp>
#include <strata/core/error.hpp>

namespace strata::comm {

STRATA_INLINE std::string RankGpus::text() const {
    std::string all = std::to_string(told) + '\0' + host + '\0' + none_because;
    for (const std::string& id : ids) all += '\0' + id;
    return all;
}

STRATA_INLINE RankGpus RankGpus::from_text(std::string_view text) {
    std::vector<std::string> fields{""};
    for (const char c : text) {
        if (c == '\0')
            fields.emplace_back();
        else
            fields.back() += c;
    }
    return {fields.at(1), {fields.begin() + 3, fields.end()}, std::stoi(fields[0]), fields.at(2)};
}

namespace detail {

/// The rank that has a GPU, by host and id.
using GpuOwners = std::map<std::pair<std::string_view, std::string_view>, std::size_t>;

/// "rank 2 on node7 finds no free GPU; it sees GPU 0 (0000:17:00.0, taken by rank 0), GPU 1 (0000:65:00.0)"
[[nodiscard]] STRATA_INLINE std::string no_gpu_sentence(std::size_t rank, const RankGpus& gpus, const GpuOwners& owners,
                                                        const std::string& what) {
    std::string sentence = "rank " + std::to_string(rank) + " on " + gpus.host + " " + what + "; it sees ";
    for (std::size_t gpu = 0; gpu < gpus.ids.size(); ++gpu) {
        const auto owner = owners.find({gpus.host, gpus.ids[gpu]});
        sentence += (gpu == 0 ? "GPU " : ", GPU ") + std::to_string(gpu) + " (" + gpus.ids[gpu];
        if (owner != owners.end()) sentence += ", taken by rank " + std::to_string(owner->second);
        sentence += ")";
    }
    return sentence;
}

}  // namespace detail

STRATA_INLINE std::vector<int> gpu_assignment(std::span<const RankGpus> ranks) {
    std::vector<int> chosen(ranks.size(), -1);
    detail::GpuOwners owners;
    const auto take = [&](std::size_t rank, std::size_t gpu) {
        const RankGpus& gpus = ranks[rank];
        if (gpu >= gpus.ids.size() || !owners.try_emplace({gpus.host, gpus.ids[gpu]}, rank).second) return false;
        chosen[rank] = static_cast<int>(gpu);
        return true;
    };
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (!ranks[rank].ids.empty()) continue;
        throw Error{
            Errc::no_gpu,
            "rank " + std::to_string(rank) + " on " + ranks[rank].host + " finds no GPU: " + ranks[rank].none_because,
            "run on hosts with an NVIDIA GPU and its driver (nvidia-smi shows both), or train on the CPU"};
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const int told = ranks[rank].told;
        if (told < 0 || take(rank, static_cast<std::size_t>(told))) continue;
        const std::string what = "cannot take GPU " + std::to_string(told) + " as NcclOptions::device says";
        throw Error{Errc::no_gpu, detail::no_gpu_sentence(rank, ranks[rank], owners, what),
                    "set NcclOptions::device to the number of a GPU that this rank sees and no other rank takes, "
                    "counted from 0, or leave the choice to strata with -1"};
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (std::size_t gpu = 0; chosen[rank] < 0 && gpu < ranks[rank].ids.size(); ++gpu) take(rank, gpu);
        if (chosen[rank] >= 0) continue;
        throw Error{Errc::no_gpu, detail::no_gpu_sentence(rank, ranks[rank], owners, "finds no free GPU"),
                    "start at most one rank a GPU on that host, or show each rank a GPU that no other rank sees "
                    "(CUDA_VISIBLE_DEVICES)"};
    }
    return chosen;
}

}  // namespace strata::comm
