#pragma once
// strata/datasets/discovery.hpp - which pictures a data set holds, how large they are and what they are called.

#include <strata/comm/communicator.hpp>
#include <strata/config/dataset.hpp>
#include <strata/datasets/caption_files.hpp>
#include <strata/datasets/discovered.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::datasets {

/// Lists a data set and reads what is not known of its pictures (pictures::is_picture_name() tells these): headers and captions, with scan_for_errors also the
/// pixels. Sizes and captions that are in a table come from there.
///
/// Rank 0 lists, and keeps what is found out in the index, a part at a time: a start that was stopped goes on where it
/// ended, and one that was not reads only files of another size or version. Every rank reads its share; all ranks get
/// the same result. With preserve_data_backend_cache, or skip_file_discovery `metadata`, nothing is listed if an
/// earlier start came to its end.
///
/// With max_num_samples the samples are those of chosen_samples().
///
/// With delete_problematic_images, files whose pixels are damaged (pictures::is_damage()) are read once more and removed
/// if they still are. What this program has no decoder for is tried again by one that decodes other formats.
///
/// Collective. Throws Errc::no_samples when the folder is missing or holds no picture, interrupted, what SampleIndex
/// and read_table() throw, and what the store throws when it cannot be listed or reached. A picture that cannot be read
/// is skipped and named, and looked at again at the next start.
template <comm::Communicator Comm, storage::ObjectStore Store>
[[nodiscard]] Discovered discover(Comm& comm, const Store& store, const config::ImageDataset& dataset,
                                  const DiscoverOptions& options = {});

}  // namespace strata::datasets

#include <strata/datasets/detail/discovery.hpp>
