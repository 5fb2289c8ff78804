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
///   28xx health and webhooks
enum class Errc : std::uint16_t {
    io_failed = 2001,            ///< an operating system call on a file failed
    not_found = 2002,            ///< a file or object that must exist does not
    no_space = 2003,             ///< the disk is full; nothing half-written was left behind
    corrupt_gzip = 2004,         ///< bytes are no gzip stream, or its check sum is wrong
    corrupt_safetensors = 2005,  ///< bytes are no safetensors file
    bad_object_key = 2006,       ///< an object key is empty, too long, or would leave its store
    store_refused = 2007,        ///< an object store refused a request: wrong credentials, missing rights
    no_bucket = 2008,            ///< a bucket does not exist
    clock_skew = 2009,           ///< this machine's clock and an object store's differ too much
    store_unreachable = 2010,    ///< no connection to an object store: its name, its address, its certificate
    transfer_failed = 2011,      ///< a connection broke or stalled, or a server was too busy, until no attempt was left
    bad_answer = 2012,           ///< an answer is not what an S3 server says, or bytes arrived damaged
    object_changed = 2013,       ///< an object was replaced again and again while it was read in parts
    no_credentials = 2014,       ///< nothing to sign requests with, or only half of it
    unsupported_dtype = 2015,    ///< a tensor of a safetensors file has an element type that cannot be used

    unreadable_config = 2101,   ///< a configuration file is missing or no valid JSON
    unknown_key = 2102,         ///< a key that no schema knows, usually a typing error
    bad_value = 2103,           ///< a key's value has the wrong type or is out of range
    unsupported_key = 2104,     ///< a key that other trainers know and strata does not act on
    bad_reference = 2105,       ///< an id or path that was given points to nothing that can be used
    no_backend = 2106,          ///< a data set is in a bucket, and the program was built for folders
    no_composition = 2107,      ///< policies are asked for that the program was not composed with
    bad_csv_line = 2108,        ///< a line of a CSV table has other fields than its first line, or no end of a quote
    url_failed = 2109,          ///< an address of a list gives no picture
    read_only = 2110,           ///< a place that is only read was to be written to
    bad_tar = 2111,             ///< a tar shard is damaged, or compressed, sparse or otherwise not to be read in place
    sample_failed = 2116,       ///< a sample could not be made when its turn came, for a reason of an encoder's own
    broken_bucket = 2117,       ///< on_broken_sample is replace, and no sample of a bucket can be used
    no_pairs = 2118,            ///< no picture of a data set has a conditioning picture of its name
    bad_conditioning = 2119,    ///< a data set has other conditioning pictures than the model takes
    ambiguous_pair = 2120,      ///< several conditioning pictures have the name of one picture
    bad_caption_filter = 2121,  ///< an entry of caption_filter_list is no expression that can be applied
    node_refused = 2122,        ///< a node of a launch has another secret, number or size than the first one expects
    node_missing = 2123,        ///< a node of a launch did not come, or the first one cannot be reached
    host_lost = 2124,           ///< the connection to a host broke while its ranks were running
    not_elastic = 2125,         ///< on the hosts that are left a launch may not go on
    unprepared = 2126,          ///< batches are asked of a source whose prepare() was not called
    bad_recipe = 2127,          ///< what a recipe encoded is not what it says of it
    other_base_weights =
        2128,  ///< an adapter goes on over other weights than those it was trained over: said, not thrown

    picture_too_large = 2113,   ///< a picture claims more pixels, or its file more bytes, than are accepted
    no_picture_library = 2114,  ///< a picture's format needs a library that the program was built without
    picture_undecided = 2115,   ///< a decoder gave up, and not surely because of the file

    no_samples = 2201,            ///< a data folder is missing, empty, or everything in it was skipped
    bad_picture = 2202,           ///< a picture's bytes are wrong, or it ends early
    small_bucket = 2203,          ///< a bucket holds fewer samples than the effective batch
    bad_cache_entry = 2204,       ///< a cached tensor is damaged or of another shape than expected
    unsupported_picture = 2205,   ///< a picture is of a format or kind that is not decoded
    unsummed_cache_entry = 2206,  ///< a cached tensor has no check sum: an earlier version wrote it

    rank_failed = 2301,         ///< another rank failed, or MPI reported an error
    rank_mismatch = 2302,       ///< ranks disagree on something all of them must share
    collective_timeout = 2303,  ///< ranks waited too long for a rank that did not arrive
    comm_busy = 2304,           ///< two threads are inside one communicator at once
    no_gpu = 2305,              ///< a rank finds no GPU of its own

    non_finite = 2401,            ///< a loss or gradient is NaN or infinite
    no_parameters = 2402,         ///< a model without trainable parameters
    bad_parameter = 2403,         ///< a parameter's type, device or layout cannot be trained
    wrong_call_order = 2404,      ///< backward() and step() of an engine were called out of turn
    device_failed = 2405,         ///< a GPU or its driver refused work or failed at it
    bad_loss = 2406,              ///< a loss is no scalar that gradients can be computed of
    bad_learning_rate = 2407,     ///< a schedule gave a step a rate below 0, NaN or infinite
    not_enough_memory = 2410,     ///< buffers or state need more host memory than is free
    stale_swap = 2411,            ///< state that was read back from disk is not what was written last
    swap_in_use = 2412,           ///< another living run keeps its state under the same run id
    swap_lock_timeout = 2413,     ///< another process keeps the lock of a disk for swap files
    loss_scale_exhausted = 2421,  ///< fp16 gradients overflow even at the smallest loss scale
    uneven_batches = 2430,        ///< ranks' sources make micro-batches or epochs of different sizes
    turns_out_of_step = 2431,     ///< trainers that take turns have no checkpoints of one moment

    corrupt_checkpoint = 2501,   ///< a checkpoint is incomplete or its check sums do not match
    checkpoint_mismatch = 2502,  ///< a checkpoint belongs to another model or update rule
    step_failed = 2503,          ///< a model or a source threw something of its own in a step

    bad_argument = 2601,         ///< a command line argument is unknown or has no valid value
    output_not_writable = 2602,  ///< the output directory cannot be created or written
    output_in_use = 2603,        ///< another run works in the same output directory
    interrupted = 2604,          ///< stopped on request before training began
    cannot_launch = 2605,        ///< a program, or mpirun, cannot be started
    rank_died = 2606,            ///< a signal ended a rank, or it failed without a word

    corrupt_parquet = 2620,      ///< bytes are no Parquet file, or it is damaged
    unsupported_parquet = 2621,  ///< a Parquet file or column is of a kind that is not read
    parquet_too_large = 2622,    ///< a part of a Parquet file is larger than the limits allow
    no_such_column = 2623,       ///< a table has no column of a name that was asked for
    wrong_column_type = 2624,    ///< a table's column holds values of another kind than needed
    bad_json_line = 2625,        ///< a line of a table in JSON lines is no JSON object, or too long

    bad_model_options = 2701,      ///< a model's sizes do not fit together
    bad_tokenizer = 2702,          ///< a tokenizer's file is no such file, or damaged
    bad_model_config = 2703,       ///< a model's config.json names what is not known, or sizes that fit no model
    bad_diffusion_options = 2704,  ///< numbers of a noise schedule, a sampler or an objective do not go together
    bad_weight_files = 2705,    ///< a folder or an index of weights names files that are missing, or disagree with it
    weights_do_not_fit = 2706,  ///< weights of a file have other names, shapes or types than the model
    bad_model_folder = 2707,    ///< files of a pretrained model are missing, wrong, or do not go together
    adapter_does_not_fit =
        2718,  ///< adapters of a file are for other layers or shapes than the model's, or pairs are not complete
    bad_adapter_file = 2719,  ///< a file has no adapters, or its metadata cannot be read

    gpu_fault = 2801,   ///< a circuit breaker opened: a GPU counts errors, is slowed by its hardware, or is lost
    host_fault = 2802,  ///< a circuit breaker opened: a disk of the host fails, or it is about to run out of memory

    webhook_forbidden =
        2811,               ///< a webhook leads to a private address or to another server, which is to be allowed first
    webhook_failed = 2812,  ///< a webhook does not take events
    events_dropped = 2813,  ///< events wait for a webhook in such numbers that some were let go: said, not thrown
};

/// True for failures a person causes by input and mends by other input: exit status 2, not 1.
constexpr bool is_bad_input(Errc code) noexcept {
    switch (code) {
        case Errc::store_refused:
        case Errc::no_bucket:
        case Errc::no_credentials:
        case Errc::unsupported_dtype:
        case Errc::unreadable_config:
        case Errc::unknown_key:
        case Errc::bad_value:
        case Errc::unsupported_key:
        case Errc::bad_reference:
        case Errc::no_pairs:
        case Errc::bad_conditioning:
        case Errc::ambiguous_pair:
        case Errc::bad_caption_filter:
        case Errc::no_backend:
        case Errc::no_composition:
        case Errc::bad_object_key:
        case Errc::corrupt_parquet:
        case Errc::unsupported_parquet:
        case Errc::parquet_too_large:
        case Errc::no_such_column:
        case Errc::wrong_column_type:
        case Errc::bad_json_line:
        case Errc::bad_csv_line:
        case Errc::url_failed:
        case Errc::read_only:
        case Errc::bad_tar:
        case Errc::no_gpu:
        case Errc::no_samples:
        case Errc::broken_bucket:
        case Errc::uneven_batches:
        case Errc::small_bucket:
        case Errc::checkpoint_mismatch:
        case Errc::bad_argument:
        case Errc::cannot_launch:
        case Errc::node_refused:
        case Errc::bad_model_options:
        case Errc::bad_diffusion_options:
        case Errc::bad_model_config:
        case Errc::bad_tokenizer:
        case Errc::bad_weight_files:
        case Errc::weights_do_not_fit:
        case Errc::bad_model_folder:
        case Errc::adapter_does_not_fit:
        case Errc::bad_adapter_file:
        case Errc::output_not_writable:
        case Errc::swap_in_use:
        case Errc::output_in_use:
        case Errc::webhook_forbidden:
            return true;
        default:
            return false;
    }
}

/// The only exception type strata throws: "[STnnnn] <what is wrong>. Fix: <what to do>."
///
///   what  one sentence in the user's words that names the file, key or rank; no full stop at its end
///   fix   what to type or change; no full stop at its end
/// Control characters in names that both contain are shown as escapes (core/printable.hpp): a message is one line.
class Error : public std::runtime_error {
public:
    Error(Errc code, std::string_view what, std::string_view fix);
    [[nodiscard]] Errc code() const noexcept { return code_; }
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }  ///< `what`, printable
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
