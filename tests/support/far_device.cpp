// tests/support/far_device.cpp - memory, streams and operations of the far device, and their registration.

#include "far_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace strata_test::far {

namespace {

constexpr at::DeviceType far_type = at::kXPU;
constexpr at::DispatchKey far_key = at::DispatchKey::XPU;

[[noreturn]] void give_up(const char* what, const void* address, std::size_t bytes) {
    std::fprintf(stderr, "far device: %s (%zu bytes at %p)\n", what, bytes, address);
    std::abort();
}

// ---- memory ---------------------------------------------------------------------------------------------------

/// One memory file mapped twice: where the host may not touch it, and where operations do. Pages come with their use.
class Memory {
public:
    static constexpr std::size_t size = std::size_t{1} << 30;
    static constexpr std::size_t alignment = 512;  // that of CUDA's allocator

    static Memory& instance() {
        static Memory& memory = *new Memory;  // outlives every tensor
        return memory;
    }

    void* take(std::size_t bytes) {
        if (bytes == 0) return nullptr;
        const std::lock_guard lock{mutex_};
        const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
        const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& b) { return b.second >= room; });
        TORCH_CHECK(found != free_.end(), "far device out of memory: ", bytes, " bytes asked for, ", in_use_, " of ",
                    size, " in use");
        const auto [begin, length] = *found;
        free_.erase(found);
        if (length > room) free_.emplace(begin + room, length - room);
        used_.emplace(begin, bytes);
        in_use_ += bytes;
        peak_ = std::max(peak_, in_use_);
        std::memset(shadow_ + begin, 0xff, room);
        return device_ + begin;
    }

    void give_back(void* address) noexcept {
        if (address == nullptr) return;
        const std::lock_guard lock{mutex_};
        std::size_t begin = static_cast<std::size_t>(static_cast<std::byte*>(address) - device_);
        const auto block = used_.find(begin);
        if (block == used_.end()) give_up("freed what is not allocated", address, 0);
        std::size_t length = (block->second + alignment - 1) / alignment * alignment;
        in_use_ -= block->second;
        used_.erase(block);
        std::memset(shadow_ + begin, 0xff, length);
        const auto after = free_.lower_bound(begin);
        if (after != free_.end() && after->first == begin + length) {
            length += after->second;
            free_.erase(after);
        }
        const auto next = free_.lower_bound(begin);
        if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
            std::prev(next)->second += length;
        } else {
            free_.emplace(begin, length);
        }
    }

    [[nodiscard]] bool owns(const void* address) const noexcept {
        const auto* const byte = static_cast<const std::byte*>(address);
        return byte >= device_ && byte < device_ + size;
    }

    void* on_host(const void* address, std::size_t bytes) {
        if (!owns(address)) give_up("not an address of the device", address, bytes);
        const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - device_);
        const std::lock_guard lock{mutex_};
        const auto behind = used_.upper_bound(offset);
        if (behind == used_.begin()) give_up("not allocated", address, bytes);
        const auto& [begin, length] = *std::prev(behind);
        if (offset + bytes > begin + length) give_up("not allocated, or not to the end", address, bytes);
        return shadow_ + offset;
    }

    [[nodiscard]] std::size_t in_use() {
        const std::lock_guard lock{mutex_};
        return in_use_;
    }
    [[nodiscard]] std::size_t peak() {
        const std::lock_guard lock{mutex_};
        return peak_;
    }
    void reset_peak() {
        const std::lock_guard lock{mutex_};
        peak_ = in_use_;
    }

private:
    Memory() {
        const int file = ::memfd_create("far_device", MFD_CLOEXEC);
        if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) give_up("no memory file", nullptr, size);
        device_ = map(file, PROT_NONE);
        shadow_ = map(file, PROT_READ | PROT_WRITE);
        ::close(file);
        free_.emplace(0, size);
    }

    static std::byte* map(int file, int access) {
        void* const memory = ::mmap(nullptr, size, access, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (memory == MAP_FAILED) give_up("the memory file cannot be mapped", nullptr, size);
        return static_cast<std::byte*>(memory);
    }

    std::byte* device_ = nullptr;
    std::byte* shadow_ = nullptr;
    std::mutex mutex_;
    std::map<std::size_t, std::size_t> free_;  // begin -> length, multiples of the alignment; neighbours are merged
    std::map<std::size_t, std::size_t> used_;  // begin -> bytes asked for
    std::size_t in_use_ = 0;
    std::size_t peak_ = 0;
};

/// No `override`: later versions of libtorch took the const from allocate() and added copy_data().
struct Allocator final : c10::Allocator {
    at::DataPtr allocate(std::size_t bytes) const {
        void* const memory = Memory::instance().take(bytes);
        return {memory, memory, &release, device()};
    }
    at::DataPtr allocate(std::size_t bytes) { return std::as_const(*this).allocate(bytes); }
    void copy_data(void* to, const void* from, std::size_t bytes) const {
        std::memcpy(detail::host_address(to, bytes), detail::host_address(from, bytes), bytes);
    }
    at::DeleterFnPtr raw_deleter() const override { return &release; }
    static void release(void* memory) { Memory::instance().give_back(memory); }
};
Allocator far_allocator;

// ---- streams and events ---------------------------------------------------------------------------------------

thread_local c10::StreamId current_stream = 0;

/// One device; streams are numbers, and events always done.
struct Guard final : c10::impl::DeviceGuardImplInterface {
    at::DeviceType type() const override { return far_type; }
    at::Device exchangeDevice(at::Device) const override { return device(); }
    at::Device getDevice() const override { return device(); }
    void setDevice(at::Device) const override {}
    void uncheckedSetDevice(at::Device) const noexcept override {}
    at::DeviceIndex deviceCount() const noexcept override { return 1; }

    c10::Stream getStream(at::Device) const noexcept override { return stream(current_stream); }
    c10::Stream getDefaultStream(at::Device) const override { return stream(0); }
    c10::Stream getStreamFromGlobalPool(at::Device, bool = false) const override {
        static std::atomic<c10::StreamId> last{0};
        return stream(++last % 32 + 1);
    }
    c10::Stream exchangeStream(c10::Stream to) const noexcept override {
        return stream(std::exchange(current_stream, to.id()));
    }
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream&) const override {}

    void record(void** event, const c10::Stream&, const at::DeviceIndex, const c10::EventFlag) const override {
        static char mark;
        *event = &mark;
    }
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }

private:
    static c10::Stream stream(c10::StreamId id) { return c10::Stream{c10::Stream::UNSAFE, device(), id}; }
};

// ---- operations -----------------------------------------------------------------------------------------------

/// Where the host finds a storage's bytes; null while it has none.
void* host_data(const c10::Storage& storage) {
    return storage.data() == nullptr ? nullptr : detail::host_address(storage.data(), storage.nbytes());
}

/// A tensor with the shape of `like` over `storage`.
at::Tensor tensor_like(const at::Tensor& like, c10::Storage storage, at::DispatchKey key) {
    auto impl = c10::make_intrusive<at::TensorImpl>(std::move(storage), at::DispatchKeySet{key}, like.dtype());
    impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    impl->_set_conj(like.is_conj());
    impl->_set_neg(like.is_neg());
    return at::Tensor{std::move(impl)};
}

bool is_far_tensor(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == far_type; }

/// A GPU reads what is behind a null pointer too, and fails some calls later.
void check_far_tensor(const at::Tensor& tensor, bool reads_memory) {
    TORCH_CHECK(tensor.layout() == at::kStrided, "the far device has dense tensors only");
    if (!reads_memory || tensor.numel() == 0) return;
    const std::size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size(),
                                                                static_cast<std::size_t>(tensor.storage_offset()));
    TORCH_CHECK(tensor.storage().data() != nullptr && needed <= tensor.storage().nbytes(),
                "far device: a tensor without its memory, which has been dropped");
}

/// One call of an operation: its arguments as CPU tensors over the same bytes, and what it did to them as far tensors.
class HostCall {
public:
    explicit HostCall(const c10::FunctionSchema& schema)
        : schema_{schema}, reads_memory_{schema.name() != "aten::set_" && schema.name() != "aten::resize_"} {
        for (const c10::Argument& result : schema.returns()) {
            if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) reads_memory_ = false;  // a view
        }
    }

    [[nodiscard]] c10::IValue to_host(const c10::IValue& value, bool written) {
        if (value.isTensor()) return to_host(value.toTensor(), !written && is_number(value.toTensor()));
        if (value.isTensorList()) {
            c10::List<at::Tensor> list;
            for (const at::Tensor& tensor : value.toTensorVector()) {
                list.push_back(to_host(tensor, !written && is_number(tensor)));
            }
            return list;
        }
        if (value.isOptionalTensorList()) {  // indices, which may be on the CPU
            c10::List<c10::optional<at::Tensor>> list;
            for (const c10::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
                list.push_back(tensor ? c10::optional<at::Tensor>{to_host(*tensor, true)} : c10::nullopt);
            }
            return list;
        }
        if (value.isStorage()) return to_host(value.toStorage());
        TORCH_CHECK(!value.isGenerator(), "Expected a generator of ", device(), ", found one of ",
                    value.toGenerator().device(), ", in ", schema_.name());
        if (value.isDevice() && value.toDevice().type() == far_type) return at::Device{at::kCPU};
        return value;
    }

    /// Sizes and memory that the operation changed: of out= tensors, and by resize_() and set_().
    void take_changes() {
        for (const auto& [far, host] : storages_) {
            if (host.data() != host_data(far)) refill(far, host);
        }
        for (const auto& [far, host] : tensors_) {
            at::TensorImpl& impl = *far.unsafeGetTensorImpl();
            if (const c10::Storage now = to_far(host.storage());
                now.unsafeGetStorageImpl() != impl.storage().unsafeGetStorageImpl()) {
                impl.set_storage_keep_dtype(now);
            }
            if (far.sizes() != host.sizes() || far.strides() != host.strides() ||
                far.storage_offset() != host.storage_offset()) {
                impl.set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
            }
        }
    }

    /// An argument for itself, a view of one for a view, and otherwise a new tensor.
    [[nodiscard]] c10::IValue to_far(const c10::IValue& value) {
        if (value.isTensor()) return to_far(value.toTensor());
        if (!value.isTensorList()) return value;
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_far(tensor));
        return list;
    }

private:
    static bool is_number(const at::Tensor& tensor) { return tensor.defined() && tensor.dim() == 0; }

    at::Tensor to_host(const at::Tensor& tensor, bool may_be_near) {
        if (!is_far_tensor(tensor)) {
            TORCH_CHECK(!tensor.defined() || may_be_near,
                        "Expected all tensors to be on the same device, but found at least two devices, ", device(),
                        " and ", tensor.device(), ", in ", schema_.name());
            return tensor;
        }
        check_far_tensor(tensor, reads_memory_);
        for (const auto& [far, host] : tensors_) {
            if (far.is_same(tensor)) return host;
        }
        at::Tensor host = tensor_like(tensor, to_host(tensor.storage()), at::DispatchKey::CPU);
        tensors_.emplace_back(tensor, host);
        return host;
    }

    c10::Storage to_host(const c10::Storage& storage) {
        for (const auto& [far, host] : storages_) {
            if (far.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return host;
        }
        const bool resizable = storage.resizable();
        c10::Storage host{c10::Storage::use_byte_size_t{}, storage.nbytes(), at::DataPtr{host_data(storage), at::kCPU},
                          resizable ? c10::GetCPUAllocator() : nullptr, resizable};
        storages_.emplace_back(storage, host);
        return host;
    }

    at::Tensor to_far(const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        for (const auto& [far, host] : tensors_) {
            if (host.is_same(tensor)) return far;
        }
        TORCH_CHECK(tensor.layout() == at::kStrided, "the far device has dense tensors only; ", schema_.name());
        return tensor_like(tensor, to_far(tensor.storage()), far_key);
    }

    c10::Storage to_far(const c10::Storage& storage) {
        for (const auto& [far, host] : storages_) {
            if (host.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return far;
        }
        c10::Storage far{c10::Storage::use_byte_size_t{}, 0, &far_allocator, true};
        refill(far, storage);
        storages_.emplace_back(far, storage);  // results that share memory share it there too
        return far;
    }

    static void refill(const c10::Storage& far, const c10::Storage& host) {
        at::DataPtr memory = std::as_const(far_allocator).allocate(host.nbytes());
        if (host.nbytes() > 0)
            std::memcpy(detail::host_address(memory.get(), host.nbytes()), host.data(), host.nbytes());
        far.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
        far.unsafeGetStorageImpl()->set_nbytes(host.nbytes());
    }

    const c10::FunctionSchema& schema_;
    bool reads_memory_;
    std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;       // far, host
    std::vector<std::pair<c10::Storage, c10::Storage>> storages_;  // far, host
};

/// Any operation: the CPU's, over the same bytes.
void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    HostCall call{schema};
    const std::size_t first = stack->size() - schema.arguments().size();
    for (std::size_t i = first; i < stack->size(); ++i) {
        const c10::AliasInfo* const alias = schema.arguments()[i - first].alias_info();
        (*stack)[i] = call.to_host((*stack)[i], alias != nullptr && alias->isWrite());
        // Since libtorch 2.x autograd makes them so for every device but XPU, and the CPU's kernel takes no others.
        if (schema.name() == "aten::native_group_norm_backward" && i - first < 2)
            (*stack)[i] = (*stack)[i].toTensor().contiguous();
    }
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    op.redispatchBoxed(at::DispatchKeySet{at::DispatchKey::CPU}, stack);
    call.take_changes();
    for (std::size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
        (*stack)[i] = call.to_far((*stack)[i]);
    }
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(size, &far_allocator, at::DispatchKeySet{far_key}, c10::dtype_or_default(dtype),
                                     format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
    return at::detail::empty_strided_generic(size, stride, &far_allocator, at::DispatchKeySet{far_key},
                                             c10::dtype_or_default(dtype));
}

/// Whichever of the two is far.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
    const auto host = [](const at::Tensor& tensor) {
        if (!is_far_tensor(tensor)) return tensor;
        check_far_tensor(tensor, true);
        const c10::Storage& storage = tensor.storage();
        return tensor_like(
            tensor, {c10::Storage::use_byte_size_t{}, storage.nbytes(), at::DataPtr{host_data(storage), at::kCPU}},
            at::DispatchKey::CPU);
    };
    host(to).copy_(host(from));
    return to;
}

/// libtorch 1.13 would call _copy_from itself; since 2.x it has a way of its own for XPU, which its CPU build lacks.
at::Tensor& copy_to(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
    copy_from(from, to, non_blocking);
    return to;
}

void record_stream(at::Tensor&, c10::Stream) {}

}  // namespace

// ---- registration ---------------------------------------------------------------------------------------------

C10_REGISTER_GUARD_IMPL(XPU, Guard)

REGISTER_ALLOCATOR(far_type, &far_allocator)

TORCH_LIBRARY_IMPL(_, XPU, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>()); }

TORCH_LIBRARY_IMPL(aten, XPU, m) {
    m.impl("empty.memory_format", &empty);
    m.impl("empty_strided", &empty_strided);
    m.impl("_copy_from", &copy_from);
    m.impl("copy_", &copy_to);
    m.impl("record_stream", &record_stream);
    // Made of other operations for devices without kernels of their own. To have the CPU's bits, what the CPU has a
    // kernel for, and what picks a kernel by device, is the CPU's here too.
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        const auto op = c10::Dispatcher::singleton().findSchema(name);
        if (!op || name.getNamespace() != "aten" || op->hasKernelForDispatchKey(far_key)) continue;
        const bool composed = op->hasKernelForDispatchKey(at::DispatchKey::CompositeExplicitAutograd) ||
                              op->hasKernelForDispatchKey(at::DispatchKey::CompositeExplicitAutogradNonFunctional);
        const bool by_device = name.name == "aten::convolution" || name.name == "aten::convolution_backward";
        if ((composed && op->hasKernelForDispatchKey(at::DispatchKey::CPU)) || by_device) {
            const std::string short_name = name.name.substr(6);  // behind "aten::"
            m.impl((name.overload_name.empty() ? short_name : short_name + "." + name.overload_name).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
        }
    }
}

// ---- interface ------------------------------------------------------------------------------------------------

namespace {
struct AtomicCounts {
    std::atomic<std::int64_t> fences{0}, waits{0}, finishes{0}, operations{0}, kernels{0}, pinned_bytes{0};
};
AtomicCounts counted;
}  // namespace

at::Device device() { return {far_type, 0}; }
bool is_far(const void* address) { return Memory::instance().owns(address); }
std::int64_t bytes_in_use() { return static_cast<std::int64_t>(Memory::instance().in_use()); }
std::int64_t peak_bytes() { return static_cast<std::int64_t>(Memory::instance().peak()); }
void reset_peak() { Memory::instance().reset_peak(); }

void* detail::host_address(const void* device_address, std::size_t bytes) {
    return Memory::instance().on_host(device_address, bytes);
}

Counts counts() {
    return {.fences = counted.fences,
            .waits = counted.waits,
            .finishes = counted.finishes,
            .operations = counted.operations,
            .kernels = counted.kernels,
            .pinned_bytes = counted.pinned_bytes};
}

void Device::Fence::wait() const { ++counted.waits; }
Device::Fence Device::fence() const {
    ++counted.fences;
    return {};
}
void Device::finish() const { ++counted.finishes; }
Device::Operation::Operation(const Device&) { ++counted.operations; }
void Device::count_kernel() { ++counted.kernels; }

strata::offload::Pinning Device::pinning() const {
    return {
        .pin = [](std::span<std::byte> memory) { counted.pinned_bytes += static_cast<std::int64_t>(memory.size()); },
        .unpin = [](std::span<std::byte> memory) { counted.pinned_bytes -= static_cast<std::int64_t>(memory.size()); }};
}

std::uint64_t Device::free_memory() const { return Memory::size - Memory::instance().in_use(); }

}  // namespace strata_test::far
