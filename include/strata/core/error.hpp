#pragma once
// strata/core/error.hpp - the only exception type strata throws, and the numbers it carries.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata {

/// Run-time failures by number. A number is never reused; docs/errors/STnnnn.md explains each one.
///
/// 0xxx are compile-time sentences (policies and rules) and do not appear here.
///   20xx bytes and files    21xx configuration    22xx data sets and pictures
///   23xx ranks              24xx engine           25xx checkpoints    26xx session and trainer   27xx models
enum class Errc : std::uint16_t {
    io_failed = 2001,          ///< an operating system call on a file failed
    not_found = 2002,          ///< a file or object that must exist does not
    no_space = 2003,           ///< the disk is full; nothing half-written was left behind
    corrupt_gzip = 2004,       ///< bytes are no gzip stream, or its check sum is wrong
    corrupt_safetensors = 2005,  ///< bytes are no safetensors file
    bad_object_key = 2006,     ///< an object key would leave its store

    unreadable_config = 2101,  ///< a configuration file is missing or no valid JSON
    unknown_key = 2102,        ///< a key that no schema knows, usually a typing error
    bad_value = 2103,          ///< a key's value has the wrong type or is out of range
    unsupported_key = 2104,    ///< a key that other trainers know and strata does not act on
    bad_reference = 2105,      ///< an id or path in the configuration points to nothing that can be used

    no_samples = 2201,         ///< a data folder is missing, empty, or everything in it was skipped
    bad_picture = 2202,        ///< a picture cannot be decoded
    small_bucket = 2203,       ///< a bucket holds fewer samples than the effective batch
    bad_cache_entry = 2204,    ///< a cached tensor is damaged or of another shape than expected

    rank_failed = 2301,        ///< another rank failed, or MPI reported an error
    rank_mismatch = 2302,      ///< ranks disagree on something all of them must share
    collective_timeout = 2303,  ///< ranks waited too long for a rank that did not arrive
    comm_busy = 2304,          ///< two threads are inside one communicator at once

    non_finite = 2401,         ///< a loss or gradient is NaN or infinite
    no_parameters = 2402,      ///< a model without trainable parameters
    bad_parameter = 2403,      ///< a parameter's type, device or layout cannot be trained
    wrong_call_order = 2404,   ///< backward() and step() of an engine were called out of turn
    not_enough_memory = 2410,  ///< buffers or state need more host memory than is free
    stale_swap = 2411,         ///< state that was read back from disk is not what was written last
    swap_in_use = 2412,        ///< another living run keeps its state under the same run id
    loss_scale_exhausted = 2421,  ///< fp16 gradients overflow even at the smallest loss scale

    corrupt_checkpoint = 2501,  ///< a checkpoint is incomplete or its check sums do not match
    checkpoint_mismatch = 2502,  ///< a checkpoint belongs to another model or update rule

    bad_argument = 2601,       ///< a command line argument is unknown or has no valid value
    output_not_writable = 2602,  ///< the output directory cannot be created or written
    output_in_use = 2603,      ///< another run works in the same output directory
    interrupted = 2604,        ///< stopped on request before training began

    bad_model_options = 2701,  ///< a model's sizes do not fit together
};

/// True for failures a person causes by input and mends by other input: exit status 2, not 1.
constexpr bool is_bad_input(Errc code) noexcept {
    switch (code) {
        case Errc::unreadable_config:
        case Errc::unknown_key:
        case Errc::bad_value:
        case Errc::unsupported_key:
        case Errc::bad_reference:
        case Errc::no_samples:
        case Errc::small_bucket:
        case Errc::checkpoint_mismatch:
        case Errc::bad_argument:
        case Errc::bad_model_options:
        case Errc::output_not_writable:
        case Errc::swap_in_use:
        case Errc::output_in_use: return true;
        default: return false;
    }
}

/// The only exception type strata throws: "[STnnnn] <what is wrong>. Fix: <what to do>."
///
///   what  one sentence in the user's words that names the file, key or rank; no full stop at its end
///   fix   what to type or change; no full stop at its end
class Error : public std::runtime_error {
public:
    Error(Errc code, std::string_view what, std::string_view fix);
    [[nodiscard]] Errc code() const noexcept { return code_; }
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }  ///< `what`, as given
    [[nodiscard]] const std::string& fix() const noexcept { return fix_; }

private:
    Errc code_;
    std::string problem_;
    std::string fix_;
};

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/core/impl/error.ipp>
#endif
