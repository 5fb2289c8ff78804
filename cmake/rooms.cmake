# cmake/rooms.cmake - the rooms of the house, lowest floor first, with their public headers.
#
# To add a header: put its name into its room's list. To add a room: a stanza at its floor.
# cmake/room.cmake explains the words; tests/layering checks that the lists and the folders agree.

include("${CMAKE_CURRENT_LIST_DIR}/room.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/cuda.cmake")

strata_room(core
    HEADERS
        amounts.hpp
        bf16.hpp
        crc32c.hpp
        detail/crc32c_steps.hpp
        environment.hpp
        error.hpp
        file_lock.hpp
        fp16.hpp
        inline.hpp
        lock_holder.hpp
        mix.hpp
        option_check.hpp
        policy.hpp
        printable.hpp
        ranges.hpp
        rule.hpp
        schedule_shape.hpp
        secret.hpp
        version.hpp)

strata_room(policy
    NEEDS core
    HEADERS
        backend.hpp
        compute.hpp
        ema.hpp
        offload_target.hpp
        optimizer.hpp
        place.hpp
        precision.hpp
        ranks.hpp
        recompute.hpp
        rules.hpp
        setup.hpp
        slots.hpp
        split.hpp
        tier.hpp
        zero_stage.hpp)

strata_room(config
    NEEDS core policy
    PACKAGES nlohmann_json
    LINKS nlohmann_json::nlohmann_json
    HEADERS
        dataset.hpp
        dataset_list.hpp
        schema.hpp
        trainer_config.hpp)

strata_room(storage
    NEEDS core policy
    PACKAGES ZLIB nlohmann_json CURL OpenSSL pugixml
    LINKS ZLIB::ZLIB deflate nlohmann_json::nlohmann_json CURL::libcurl OpenSSL::Crypto pugixml::pugixml
    HEADERS
        atomic_file.hpp
        credentials.hpp
        detail/in_parallel.hpp
        detail/s3_client.hpp
        detail/text.hpp
        digest.hpp
        folder_or_bucket.hpp
        gzip.hpp
        http_pool.hpp
        leftovers.hpp
        local.hpp
        object_store.hpp
        reserved_room.hpp
        retry.hpp
        s3.hpp
        s3_answers.hpp
        s3_options.hpp
        safetensors.hpp
        sigv4.hpp
        url.hpp)

if(STRATA_WITH_MPI)
    set(comm_packages MPI)
    set(comm_links MPI::MPI_CXX)
    set(comm_defines STRATA_WITH_MPI=1)
    set(comm_headers mpi_comm.hpp mpi_watchdog.hpp)
endif()
if(STRATA_WITH_CUDA)
    set(cuda_kernels cuda_kernels)
    list(APPEND comm_packages CUDAToolkit NCCL)
    list(APPEND comm_links CUDA::cudart NCCL::NCCL)
    list(APPEND comm_defines STRATA_WITH_CUDA=1)
    list(APPEND comm_headers nccl_comm.hpp rank_order_sum.hpp)
endif()
strata_room(comm
    NEEDS core policy ${cuda_kernels}
    PACKAGES ${comm_packages}
    LINKS ${comm_links}
    DEFINES ${comm_defines}
    HEADERS
        agree.hpp
        any_comm.hpp
        channel.hpp
        collective_log.hpp
        communicator.hpp
        default_comm.hpp
        gpu_assignment.hpp
        launched_rank.hpp
        self_comm.hpp
        shared_windows.hpp
        ${comm_headers})

strata_room(optim
    NEEDS core policy ${cuda_kernels}
    PACKAGES OpenMP
    LINKS OpenMP::OpenMP_CXX
    HEADERS
        adagrad.hpp
        adam.hpp
        adam_moments.hpp
        adamw.hpp
        clip.hpp
        deepspeed_schedules.hpp
        detail/device_bodies.hpp
        detail/device_layerwise.hpp
        detail/device_sums.hpp
        device_kernels.hpp
        elements.hpp
        ema.hpp
        lamb.hpp
        layerwise_kernel.hpp
        lion.hpp
        loss_scale.hpp
        run_length.hpp
        schedule.hpp
        sgd.hpp
        simd.hpp
        stochastic_rounding.hpp
        update_kernel.hpp
        update_rule.hpp)

strata_room(offload
    NEEDS core
    PACKAGES Threads
    LINKS uring Threads::Threads
    HEADERS
        block_io.hpp
        checksum.hpp
        host_arena.hpp
        host_memory.hpp
        swap_file.hpp
        swap_folder.hpp
        window_pipeline.hpp
        windows.hpp)

if(STRATA_WITH_CUDA)
    set(zero_headers cuda_device.hpp)
endif()
strata_room(zero
    NEEDS core policy comm optim offload
    PACKAGES Torch
    LINKS torch
    HEADERS
        compute_device.hpp
        detail/buffer_pool.hpp
        detail/exchange.hpp
        detail/gradient_hooks.hpp
        detail/layer_norms.hpp
        detail/local_failure.hpp
        detail/loss.hpp
        detail/preparation.hpp
        detail/recompute.hpp
        detail/run_order.hpp
        detail/staging.hpp
        detail/tier_folder.hpp
        detail/unit_gathering.hpp
        detail/update_run.hpp
        engine.hpp
        engine_options.hpp
        layout.hpp
        memory_meter.hpp
        option_checks.hpp
        parameters.hpp
        state.hpp
        tensors_in.hpp
        tier.hpp
        tiers/cpu.hpp
        tiers/device.hpp
        tiers/in_memory.hpp
        tiers/nvme.hpp
        tiers/split.hpp
        unit.hpp
        ${zero_headers})

if(STRATA_WITH_CUDA AND NOT TARGET torch_cuda)
    message(FATAL_ERROR "STRATA_WITH_CUDA needs a libtorch with CUDA; the one in ${Torch_DIR} is for the CPU. "
        "Configure anew with -DCMAKE_PREFIX_PATH=<folder>: of a libtorch for CUDA from pytorch.org, or what "
        "`python3 -c 'import torch; print(torch.utils.cmake_prefix_path)'` prints for a PyTorch with CUDA.")
endif()

strata_room(data
    NEEDS core policy config storage comm optim
    PACKAGES Torch TBB PNG JPEG ZLIB SQLite3 nlohmann_json
    LINKS torch TBB::tbb PNG::PNG JPEG::JPEG ZLIB::ZLIB SQLite::SQLite3 nlohmann_json::nlohmann_json webp webpdemux snappy zstd lz4 brotlidec
    HEADERS
        batch.hpp
        bucket_table.hpp
        buckets.hpp
        byte_budget.hpp
        byte_fields.hpp
        cache_cost.hpp
        cache_identity.hpp
        captions.hpp
        collection.hpp
        decode_image.hpp
        detail/catalog.hpp
        detail/discovery.hpp
        detail/header_bytes.hpp
        detail/image_text_source.hpp
        detail/parquet_bytes.hpp
        detail/parquet_column_reader.hpp
        detail/parquet_encodings.hpp
        detail/parquet_footer.hpp
        detail/parquet_page.hpp
        detail/source_identity.hpp
        detail/text.hpp
        detail/thrift_reader.hpp
        discovered.hpp
        discovery.hpp
        encoders.hpp
        frame.hpp
        framing.hpp
        image_header.hpp
        image_text_source.hpp
        jpeg.hpp
        latent_caching.hpp
        orientation.hpp
        parquet.hpp
        parquet_values.hpp
        permutation.hpp
        picture.hpp
        pipeline.hpp
        png.hpp
        random.hpp
        report.hpp
        resample.hpp
        sample.hpp
        sample_choice.hpp
        sample_index.hpp
        sample_plan.hpp
        sample_table.hpp
        simpletuner_sizes.hpp
        statistics.hpp
        stores.hpp
        tensor_cache.hpp
        webp.hpp)

strata_room(checkpoint
    NEEDS core policy config storage comm optim zero
    PACKAGES Torch
    LINKS torch
    HEADERS
        checkpoint.hpp
        facts.hpp
        manifest.hpp
        resume.hpp
        size.hpp)

strata_room(models
    NEEDS core policy optim data zero
    PACKAGES Torch
    LINKS torch
    HEADERS
        flow_sampler.hpp
        flux_blocks.hpp
        fused_ops.hpp
        hashed_text.hpp
        kernels.hpp
        linear_codec.hpp
        packing.hpp
        rotary.hpp
        small_flux.hpp)

strata_room(train
    NEEDS core policy config storage comm optim zero data checkpoint models
    PACKAGES Torch
    LINKS torch
    HEADERS
        batch_source.hpp
        buffer_copies.hpp
        checkpoints.hpp
        command_line.hpp
        compute.hpp
        cpu_kernels.hpp
        debiased_mean.hpp
        detail/rejected_trainer.hpp
        detail/trainer_body.hpp
        engine_options.hpp
        environment.hpp
        fit_result.hpp
        gallery.hpp
        loss_curve.hpp
        metrics.hpp
        options.hpp
        options_from_config.hpp
        picture_grid.hpp
        progress.hpp
        report.hpp
        run_folders.hpp
        run_log.hpp
        run_plan.hpp
        seed.hpp
        session.hpp
        step_failure.hpp
        stop_signal.hpp
        trainable.hpp
        trainer.hpp
        unit_rules.hpp
        validate.hpp)

strata_room(testing
    NEEDS core policy storage comm optim offload zero
    HEADERS
        communicator_conformance.hpp
        object_store_conformance.hpp
        tier_conformance.hpp
        training_conformance.hpp)

# The umbrella header belongs to strata::strata.
strata_whole_house("${PROJECT_SOURCE_DIR}/include/strata/strata.hpp")
