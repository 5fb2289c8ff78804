#pragma once
// strata/data/picture_source.hpp - PictureSource: captioned pictures, as a recipe wants them, as an endless, seekable stream of batches.

#include <memory>
#include <type_traits>
#include <utility>

#include <strata/comm/communicator.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/core/rule.hpp>
#include <strata/data/detail/loaded_recipe.hpp>
#include <strata/data/detail/picture_source_body.hpp>
#include <strata/data/recipe.hpp>
#include <strata/data/recipe_rules.hpp>
#include <strata/data/source_options.hpp>

namespace strata::data {

namespace detail {

/// The recipe itself, or in place of one that is none, of which one sentence is printed, one that compiles.
template <class R>
struct CheckedRecipe {
    using broken = rule::first_broken_t<rule::RecipeNamesItsTypes<R>, rule::RecipeSaysWhatIsCached<R>,
                                        rule::RecipeEncodes<R>, rule::RecipeMakesItsBatch<R>>;
    static constexpr bool said = [] {
        if constexpr (!Recipe<R>) return sizeof(typename broken::Report) > 0;
        return true;
    }();
    static_assert(said);
    using type = std::conditional_t<Recipe<R>, R, archetype::Recipe>;
};

}  // namespace detail

/// Folders and buckets of captioned pictures, ready to train on.
///
/// prepare() finds the pictures, sorts them into aspect buckets, and fills the caches of what the recipe's encoders make of
/// pictures and captions; work that an earlier run did is not done again. next() then returns this rank's part of
/// micro-batch 0, 1, 2, ..., made ahead of time by a flow graph (step_graph.hpp). Which samples a step holds
/// is a pure function of (seed, position) and the buckets (sample_plan.hpp), and so are the captions, which of them are
/// dropped, and random crops; its micro-batches, and in them the ranks, take equal parts in turn.
///
/// latent_caching() says of which data sets pictures are encoded before the first step, and which entries are kept. Encoders
/// are loaded when something is to be encoded, and gone when prepare() returns, unless a data set needs them while training.
///
///   R      a Recipe: of a model, recipe_of_t<Model>
///   Store  `store` of the policy Backend<...>: an ObjectStore that is made of a folder; see Stores
/// Members are documented at detail::PictureSourceBody: prepare(); micro_batches_per_epoch(); micro_batches_of(epochs);
/// samples_per_micro_batch(); seek(micro_batch); report(); closing_lines(comm); identity(); collection().
template <class R, datasets::FolderStore Store>
class PictureSource : public detail::PictureSourceBody<Store> {
    using Checked = typename detail::CheckedRecipe<R>::type;
    using Body = detail::PictureSourceBody<Store>;

public:
    using Batch = typename Checked::Batch;

    /// Opens folders and buckets, and reads nothing there.
    ///
    ///   comm  outlives the source
    /// Collective; every rank gets the same exception when one fails. Throws Errc::bad_value (aspect_bucket_alignment does not
    /// fit the recipe; is_regularisation_data without an adapter), rank_mismatch (ranks were started with different
    /// settings), no_credentials, no_backend.
    template <comm::Communicator Comm>
    PictureSource(Comm& comm, config::DatasetList datasets, std::shared_ptr<const Checked> recipe,
                  SourceOptions options)
        : Body{comm, std::move(datasets),
               std::make_unique<detail::LoadedRecipeOf<Checked>>(std::move(recipe), options.device),
               std::move(options)} {}

    /// This rank's part of the micro-batch at the position, which then moves on by one. For one thread at a time.
    /// Throws what making the batch threw, naming the file, and Errc::unprepared before prepare().
    [[nodiscard]] Batch next() { return std::move(*static_cast<Batch*>(this->next_batch().get())); }
};

}  // namespace strata::data
