#pragma once
// strata/zero/impl/preparation.ipp - checks of a model before training.

#include <algorithm>
#include <sstream>
#include <utility>

#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

STRATA_INLINE std::string describe(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& groups,
                                   const std::string& options) {
    std::ostringstream text;
    text << options << '\n';
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& parameter = parameters[i];
        text << "parameter " << parameter.name << ' ' << parameter.tensor.sizes() << " in unit " << parameter.unit
             << ", group " << groups[i] << (parameter.tensor.requires_grad() ? "" : ", frozen")
             << (parameter.excepted ? ", excepted" : "");
        if (parameter.link && parameter.link->deferred) text << ", " << parameter.link->deferred->values->description();
        text << '\n';
    }
    return text.str();
}

STRATA_INLINE void check_same_model(const std::vector<std::string>& descriptions) {
    for (std::size_t rank = 1; rank < descriptions.size(); ++rank) {
        if (descriptions[rank] == descriptions[0]) continue;
        std::istringstream first{descriptions[0]};
        std::istringstream other{descriptions[rank]};
        std::string here;
        std::string there;
        do {
            if (!std::getline(first, here)) here = "nothing more";
            if (!std::getline(other, there)) there = "nothing more";
        } while (here == there);
        throw Error{Errc::rank_mismatch,
                    "rank " + std::to_string(rank) + " has \"" + there + "\" where rank 0 has \"" + here + "\"",
                    "build the same model with the same options on every rank"};
    }
}

[[noreturn]] STRATA_INLINE void refuse(const Parameter& parameter, const std::string& why, const std::string& fix) {
    throw Error{Errc::bad_parameter, "the parameter " + parameter.name + " " + why, fix};
}

STRATA_INLINE void check_values_are_there(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
        const at::Tensor& tensor = parameter.tensor;
        if (parameter.link && parameter.link->deferred) continue;
        if (tensor.has_storage() && tensor.numel() > 0 && tensor.storage().data() == nullptr) {
            refuse(parameter, "has no memory: its values are with another engine, of ZeroStage<3>, or went with it",
                   "make one trainer a model, and for another one build the model again");
        }
    }
}

STRATA_INLINE std::vector<Parameter> split_off_frozen(std::vector<Parameter>& parameters, at::Device device,
                                                      bool computes_only) {
    const auto middle = std::stable_partition(parameters.begin(), parameters.end(), [](const Parameter& parameter) {
        return !parameter.tensor.requires_grad();
    });
    std::vector<Parameter> trained{std::make_move_iterator(middle), std::make_move_iterator(parameters.end())};
    parameters.erase(middle, parameters.end());
    if (computes_only && !trained.empty())
        refuse(trained.front(), "requires a gradient, and this engine only computes",
               "freeze it: requires_grad_(false)");
    if (trained.empty() && !computes_only) {
        throw Error{Errc::no_parameters, "the model has no parameter that requires a gradient",
                    "register parameters with register_parameter or register_module, and do not freeze all of them"};
    }
    for (const std::vector<Parameter>* group : {&trained, &parameters}) {
        for (const Parameter& parameter : *group) {
            const at::Tensor& tensor = parameter.tensor;
            if (tensor.is_cpu() || tensor.device() == device) continue;  // the engine moves it
            refuse(parameter, "is on " + tensor.device().str() + ", and this engine trains on " + device.str(),
                   "leave the model on the CPU: the engine moves it" +
                       std::string{device.is_cpu() ? " where a build with STRATA_WITH_CUDA trains on a GPU" : ""});
        }
    }
    for (const Parameter& parameter : trained) {
        const at::Tensor& tensor = parameter.tensor;
        if (tensor.layout() != at::kStrided) refuse(parameter, "is sparse", "register a dense tensor");
        if (!tensor.is_leaf())
            refuse(parameter, "is computed from other tensors", "register a leaf tensor: detach() it first");
        if (!tensor.is_floating_point())
            refuse(parameter, "holds complex numbers", "train its real and imaginary parts");
        if (tensor.numel() == 0) refuse(parameter, "has no elements", "drop it, or freeze it: requires_grad_(false)");
    }
    return trained;
}

STRATA_INLINE std::string memory_need(std::uint64_t bytes) { return std::to_string(bytes) + ' ' + core::host_name(); }

STRATA_INLINE void require_node_memory(const std::vector<std::string>& needs, const std::string& fix) {
    const std::string here = core::host_name();
    std::uint64_t bytes = 0;
    for (const std::string& need : needs) {
        const auto space = need.find(' ');
        if (need.substr(space + 1) == here) bytes += std::stoull(need.substr(0, space));
    }
    offload::require_host_memory("training this model", bytes, fix);
}

STRATA_INLINE void require_device_memory(at::Device device, std::uint64_t bytes, std::uint64_t free,
                                         const std::string& fix) {
    if (bytes <= free) return;
    throw Error{Errc::not_enough_memory,
                "training this model needs " + offload::in_gib(bytes) + " more on the device " + device.str() + " of " +
                    core::host_name() + ", " + offload::in_gib(free) + " are free",
                "move state to the host with OffloadTarget<Cpu>, or " + fix};
}

STRATA_INLINE std::unique_ptr<offload::SwapFolder> open_swap_folder(const std::filesystem::path& nvme_path,
                                                                    std::string_view run_id, int rank,
                                                                    std::chrono::milliseconds lock_timeout) {
    if (nvme_path.empty()) {
        throw Error{Errc::bad_value, "OffloadTarget<...> keeps state on disk, and nvme_path is empty",
                    "set nvme_path to a folder on a local disk"};
    }
    try {
        return std::make_unique<offload::SwapFolder>(nvme_path, run_id, rank, lock_timeout);
    } catch (const Error& error) {
        const bool is_there = error.code() != Errc::not_found && ::access(nvme_path.c_str(), W_OK | X_OK) == 0;
        if (is_there || error.code() == Errc::swap_in_use || error.code() == Errc::swap_lock_timeout) throw;
        throw Error{Errc::bad_reference, "nvme_path cannot be used: " + error.problem(), error.fix()};
    }
}

STRATA_INLINE void explain_missing_memory(const c10::Error& error) {
    // The ways in which libtorch says so; the last two are those of forbid_use().
    const auto says = [&](const char* words) { return error.msg().find(words) != std::string::npos; };
    if (!says("not allocated") && !says("out of bounds for storage of size 0") &&
        !says("no arguments had PyInterpreter") && !says("without Python support"))
        return;
    throw Error{Errc::bad_parameter,
                "a parameter that is sharded was used outside of its unit's forward pass, and has no memory there",
                "call blocks as Unit<Block> and not as Block, and use what belongs to a unit inside of its forward"};
}

STRATA_INLINE void explain_unseen_batch(const c10::Error& error, at::Device device) {
    const auto says = [&](const char* words) { return error.msg().find(words) != std::string::npos; };
    if (!says("same device") && !says("is on cpu")) return;
    throw Error{
        Errc::bad_value, "the model is on " + device.str() + ", and a tensor of its loss on another device",
        "write visit_tensors beside the struct of the batch, so that the trainer can move it (docs/gpu.md), or move it "
        "in loss()"};
}

STRATA_INLINE at::Tensor converted_frozen(const at::Tensor& tensor, at::ScalarType dtype, at::Device device) {
    at::Tensor values = tensor.detach().to(device).contiguous();
    if (tensor.is_floating_point()) values = values.to(dtype).contiguous();
    const bool part_of_more = values.has_storage() && values.storage().nbytes() > values.nbytes();
    return part_of_more ? values.clone() : values;  // of a bucket, which would stay
}

}  // namespace strata::zero::detail
