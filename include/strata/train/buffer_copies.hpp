#pragma once
// strata/train/buffer_copies.hpp - BufferCopies: a model's buffers as they were before a step that failed.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace strata::train {

/// Copies of tensors, on their devices. A forward pass changes running statistics before anybody knows whether its step
/// will be done.
class BufferCopies {
public:
    explicit BufferCopies(std::vector<at::Tensor> tensors) : tensors_{std::move(tensors)} {}

    /// Copies the tensors that were changed since the last call, all of them at the first. What is changed through a pointer
    /// and not by an operation of libtorch is not noticed.
    void take() {
        const at::NoGradGuard no_grad;
        if (copies_.empty()) {
            for (const at::Tensor& tensor : tensors_) copies_.push_back({tensor.detach().clone(), tensor._version()});
            return;
        }
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            if (tensors_[i]._version() == copies_[i].version) continue;
            copies_[i].values.copy_(tensors_[i].detach());
            copies_[i].version = tensors_[i]._version();
        }
    }

    /// Puts the copies of the last take() back where they differ.
    void put_back() {
        const at::NoGradGuard no_grad;
        for (std::size_t i = 0; i < copies_.size(); ++i) {
            if (tensors_[i]._version() == copies_[i].version) continue;
            tensors_[i].detach().copy_(copies_[i].values);
            copies_[i].version = tensors_[i]._version();
        }
    }

private:
    struct Copy {
        at::Tensor values;
        std::int64_t version;
    };
    std::vector<at::Tensor> tensors_;
    std::vector<Copy> copies_;
};

}  // namespace strata::train
