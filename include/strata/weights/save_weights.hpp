#pragma once
// strata/weights/save_weights.hpp - save_weights(): a model's weights as the ecosystem's safetensors files, tensor by tensor.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::weights {

struct SaveOptions {
    /// What floating point tensors are written as: f32, bf16 or f16, rounded to nearest. None: as the model has them. Integers stay as they are.
    std::optional<storage::Dtype> dtype{};
    /// Bytes of tensors in a file, at most; a larger tensor has a file of its own. What does not fit one file becomes several,
    /// NAME-00001-of-00003.safetensors, and NAME.safetensors.index.json. 0: one file, whatever its size.
    std::uint64_t max_shard_size = 0;
    /// In front of all names: "model.diffusion_model.".
    std::string prefix{};
    /// Tensors that are written, by name. None: all.
    std::function<bool(std::string_view name)> wanted{};
    /// The moving average of the weights and not the weights: for Trainer::save_weights().
    bool average = false;
    storage::SafetensorsMetadata metadata{{"format", "pt"}};
};

struct SavedTensor {
    std::string name;
    at::Tensor tensor;
    /// What is written in its place, made on rank 0 while the tensor is held: as many elements, of any floating point type. None: it is written as it is.
    std::function<at::Tensor(const at::Tensor& tensor)> written{};
    std::vector<std::int64_t> shape{};  ///< that it is written in; empty: its own
    bool keeps_type = false;            ///< whatever SaveOptions::dtype says
};

namespace detail {

/// The files of one call, on the rank that writes. They appear together, when all of them are complete; what was there before goes then.
class WeightWriter {
public:
    WeightWriter(const std::filesystem::path& path, std::span<const SavedTensor> tensors, const SaveOptions& options);
    WeightWriter(const WeightWriter&) = delete;
    WeightWriter& operator=(const WeightWriter&) = delete;
    ~WeightWriter();
    /// Throws bad_value for values that fp16 cannot hold.
    void write(std::size_t tensor, const at::Tensor& values);
    /// Returns the paths: an index last.
    [[nodiscard]] std::vector<std::filesystem::path> publish();

private:
    struct Shard;
    struct Place {
        std::size_t shard = 0;
        std::size_t tensor = 0;  // of the shard
    };
    std::filesystem::path path_;
    std::string prefix_;
    std::vector<std::string> names_;
    std::vector<storage::Dtype> dtypes_;
    std::vector<Place> places_;
    std::vector<std::unique_ptr<Shard>> shards_;
    std::uint64_t bytes_ = 0;
};

/// The tensors that are written, in order. Throws bad_value for options that do not fit each other.
[[nodiscard]] std::vector<SavedTensor> saved_tensors(const std::filesystem::path& path,
                                                     std::vector<SavedTensor> tensors, const SaveOptions& options);

}  // namespace detail

/// Writes tensors into `path`, which ends in .safetensors, one after the other: no more than one of them is in memory beside the model, in
/// the files' type. What is at that path, or was written to it in shards, is replaced when all is there; until then nothing is touched.
///
///   tensors  the same names on every rank; read on rank 0 only
///   hold     called on all ranks with each tensor in turn; when it returns, rank 0 can read it. May be collective
/// Returns what was written, on rank 0. Collective. Throws on all ranks if rank 0 could not write: bad_value for a path or a type that is none
/// of those above, or values that fp16 cannot hold; bad_parameter, io_failed, no_space. Nothing is left behind then.
template <comm::Communicator Comm, class Hold>
std::vector<std::filesystem::path> save_weights(Comm& comm, const std::filesystem::path& path,
                                                std::vector<SavedTensor> tensors, Hold&& hold,
                                                const SaveOptions& options = {}) {
    comm::agree(comm, [&] { tensors = detail::saved_tensors(path, std::move(tensors), options); });
    std::unique_ptr<detail::WeightWriter> writer;
    std::vector<std::filesystem::path> files;
    std::exception_ptr failure;
    const auto on_first_rank = [&](auto&& work) {  // the others are in hold() already when this fails
        if (comm.rank() != 0 || failure) return;
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
    };
    on_first_rank([&] { writer = std::make_unique<detail::WeightWriter>(path, tensors, options); });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        hold(tensors[i].tensor);
        on_first_rank([&] {
            const SavedTensor& saved = tensors[i];
            writer->write(i, saved.written ? saved.written(saved.tensor) : saved.tensor);
        });
    }
    on_first_rank([&] { files = writer->publish(); });
    writer.reset();
    comm::agree(comm, [&] {
        if (failure) std::rethrow_exception(failure);
    });
    return files;
}

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/save_weights.ipp>
#endif
