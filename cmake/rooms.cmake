# cmake/rooms.cmake - the rooms of the house, lowest floor first, with their public headers.
#
# To add a header: put its name into its room's list. To add a room: a stanza at its floor.
# cmake/room.cmake explains the words; tests/layering checks that the lists and the folders agree.

include("${CMAKE_CURRENT_LIST_DIR}/room.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/headers.cmake")

strata_room(core
    HEADERS
        amounts.hpp
        bf16.hpp
        crc32c.hpp
        elements.hpp
        environment.hpp
        error.hpp
        file_lock.hpp
        fnv1a.hpp
        fp16.hpp
        function_ref.hpp
        heap.hpp
        host_device.hpp
        host_name.hpp
        independent_loop.hpp
        inline.hpp
        kept_blocks.hpp
        lanes.hpp
        lock_holder.hpp
        mix.hpp
        option_check.hpp
        option_description.hpp
        policy.hpp
        printable.hpp
        random.hpp
        ranges.hpp
        rule.hpp
        sampling_method.hpp
        schedule_shape.hpp
        secret.hpp
        simd.hpp
        simd_avx512_bf16.hpp
        step_name.hpp
        symbol_names.hpp
        text.hpp
        thread_stacks.hpp
        thrown_type.hpp
        version.hpp
        within.hpp)

strata_room(policy
    NEEDS core
    HEADERS
        adapter.hpp
        backend.hpp
        compute.hpp
        ema.hpp
        frozen_weights.hpp
        offload_target.hpp
        optimizer.hpp
        place.hpp
        policy_name.hpp
        precision.hpp
        ranks.hpp
        recompute.hpp
        rules.hpp
        setup.hpp
        slots.hpp
        split.hpp
        tier.hpp
        update.hpp
        zero_stage.hpp)

strata_room(options
    NEEDS core
    HEADERS
        adapter_options.hpp
        deepspeed_schedules.hpp
        ema_options.hpp
        engine_options.hpp
        export_options.hpp
        gradient_norms_options.hpp
        health_options.hpp
        layer_options.hpp
        loss_scale_options.hpp
        on_non_finite.hpp
        pipeline_options.hpp
        run_length.hpp
        schedule.hpp
        tier_options.hpp
        train_options.hpp
        webhook_options.hpp)

strata_room(config
    NEEDS core policy options
    PACKAGES nlohmann_json yaml-cpp tomlplusplus
    LINKS nlohmann_json::nlohmann_json yaml-cpp tomlplusplus::tomlplusplus
    HEADERS
        accelerate.hpp
        adapter_settings.hpp
        any_config.hpp
        codegen.hpp
        combinations.hpp
        composition_of.hpp
        convert.hpp
        dataset.hpp
        dataset_list.hpp
        deepspeed.hpp
        described_keys.hpp
        detail/quoted.hpp
        disagreements.hpp
        dispatch.hpp
        document.hpp
        env_file.hpp
        findings.hpp
        format_table.hpp
        given_options.hpp
        hostfile.hpp
        intent.hpp
        intent_options.hpp
        key.hpp
        launch_script.hpp
        lycoris_config.hpp
        model_record.hpp
        model_settings.hpp
        peer_names.hpp
        problems.hpp
        prompt_file.hpp
        reading.hpp
        sample_size.hpp
        schema.hpp
        simpletuner.hpp
        source.hpp
        toml.hpp
        trainer_config.hpp
        trainer_reading.hpp
        trainer_table.hpp
        trainer_writer.hpp
        value.hpp
        webhook_list.hpp)

strata_room(storage
    NEEDS core policy
    PACKAGES ZLIB nlohmann_json OpenSSL
    LINKS ZLIB::ZLIB deflate nlohmann_json::nlohmann_json OpenSSL::Crypto
    HEADERS
        any_object_store.hpp
        atomic_file.hpp
        content_hash.hpp
        digest.hpp
        gzip.hpp
        leftovers.hpp
        local.hpp
        object_store.hpp
        reserved_room.hpp
        safetensors.hpp
        tar.hpp
        tar_store.hpp)

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
    APART mpi_comm.ipp mpi_watchdog.ipp nccl_comm.ipp
    HEADERS
        agree.hpp
        any_comm.hpp
        channel.hpp
        collective_log.hpp
        communicator.hpp
        default_comm.hpp
        folder_keepers.hpp
        gpu_assignment.hpp
        launched_rank.hpp
        self_comm.hpp
        shared_windows.hpp
        stall.hpp
        wait_listener.hpp
        ${comm_headers})

strata_room(http
    NEEDS core storage
    PACKAGES CURL
    LINKS CURL::libcurl
    HEADERS
        http_pool.hpp
        outage.hpp
        public_address.hpp
        retry.hpp
        url.hpp)

strata_room(tables
    NEEDS core storage
    PACKAGES ZLIB nlohmann_json
    LINKS ZLIB::ZLIB snappy zstd lz4 brotlidec nlohmann_json::nlohmann_json
    HEADERS
        detail/parquet_bytes.hpp
        detail/parquet_column_reader.hpp
        detail/parquet_encodings.hpp
        detail/parquet_file.hpp
        detail/parquet_footer.hpp
        detail/parquet_forms.hpp
        detail/parquet_page.hpp
        detail/parquet_rows.hpp
        detail/parquet_schema.hpp
        detail/text_window.hpp
        detail/thrift_reader.hpp
        parquet.hpp
        parquet_values.hpp
        table.hpp
        table_file.hpp)

strata_room(tokenizers
    NEEDS core storage
    PACKAGES nlohmann_json
    LINKS nlohmann_json::nlohmann_json utf8proc
    HEADERS
        byte_pairs.hpp
        clip_tokenizer.hpp
        detail/html_entities.hpp
        detail/protobuf_fields.hpp
        detail/unicode.hpp
        sentence_pieces.hpp
        t5_tokenizer.hpp
        tokenizer.hpp)

include("${CMAKE_CURRENT_LIST_DIR}/picture-libraries.cmake")
if(STRATA_WITH_TIFF)
    list(APPEND pictures_headers detail/tiff_rows.hpp tiff.hpp)
endif()
if(STRATA_WITH_GIF)
    list(APPEND pictures_headers gif.hpp)
endif()
if(STRATA_WITH_AVIF)
    list(APPEND pictures_headers avif.hpp)
endif()
if(STRATA_WITH_HEIC)
    list(APPEND pictures_headers heic.hpp)
endif()
strata_room(pictures
    NEEDS core config
    PACKAGES PNG JPEG ZLIB
    LINKS PNG::PNG JPEG::JPEG ZLIB::ZLIB webp webpdemux lcms2 ${picture_links}
    DEFINES ${picture_defines}
    HEADERS
        bmp.hpp
        buckets.hpp
        colour_profile.hpp
        conditioning.hpp
        decode_image.hpp
        detail/bmp_header.hpp
        detail/gif_header.hpp
        detail/header_bytes.hpp
        detail/heif_header.hpp
        detail/jpeg_header.hpp
        detail/png_header.hpp
        detail/tiff_header.hpp
        detail/webp_header.hpp
        formats.hpp
        frame.hpp
        framing.hpp
        header_fields.hpp
        image_header.hpp
        jpeg.hpp
        mask.hpp
        orientation.hpp
        picture.hpp
        picture_fault.hpp
        png.hpp
        resample.hpp
        simpletuner_sizes.hpp
        webp.hpp
        ${pictures_headers})

strata_room(optim
    NEEDS core policy options ${cuda_kernels}
    PACKAGES OpenMP
    LINKS OpenMP::OpenMP_CXX
    HEADERS
        adagrad.hpp
        adam.hpp
        adam_moments.hpp
        adamw.hpp
        clip.hpp
        compiled_kernels.hpp
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
        sgd.hpp
        square_root.hpp
        stochastic_rounding.hpp
        update_kernel.hpp
        update_rule.hpp
        usual_options.hpp)

strata_room(offload
    NEEDS core options
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

strata_room(s3
    NEEDS core policy storage http
    PACKAGES pugixml
    LINKS pugixml::pugixml
    HEADERS
        credentials.hpp
        detail/in_parallel.hpp
        detail/s3_client.hpp
        folder_or_bucket.hpp
        s3.hpp
        s3_answers.hpp
        s3_options.hpp
        sigv4.hpp)

if(STRATA_WITH_CUDA)
    set(zero_headers cuda_device.hpp)
endif()
strata_room(zero
    NEEDS core policy options comm optim offload
    PACKAGES Torch
    LINKS torch
    HEADERS
        average.hpp
        averages/ema.hpp
        buffers.hpp
        codecs/int8.hpp
        codecs/nf4.hpp
        compute_device.hpp
        detail/buffer_pool.hpp
        detail/generator_states.hpp
        detail/gradient_hooks.hpp
        detail/loss.hpp
        detail/packed_bytes.hpp
        detail/preparation.hpp
        detail/recompute.hpp
        detail/unit_call.hpp
        detail/unit_making.hpp
        detail/update_run.hpp
        device_kernels.hpp
        engine.hpp
        engine_options.hpp
        frozen_codec.hpp
        in_units.hpp
        layout.hpp
        memory_forecast.hpp
        memory_meter.hpp
        model_outline.hpp
        non_finite.hpp
        parameters.hpp
        parts/answers.hpp
        parts/assembly.hpp
        parts/average_swap.hpp
        parts/backward_pass.hpp
        parts/backward_update.hpp
        parts/buckets.hpp
        parts/engine_settings.hpp
        parts/engine_works.hpp
        parts/exceptions.hpp
        parts/exchange.hpp
        parts/formats.hpp
        parts/gradient_norm.hpp
        parts/gradient_reduction.hpp
        parts/gradient_tier.hpp
        parts/gradient_view.hpp
        parts/layer_norms.hpp
        parts/local_failure.hpp
        parts/memory_plan.hpp
        parts/open_sums.hpp
        parts/packed_unit.hpp
        parts/pass_peaks.hpp
        parts/run_order.hpp
        parts/scaler.hpp
        parts/shard_store.hpp
        parts/sharded_average.hpp
        parts/staging.hpp
        parts/state_carry.hpp
        parts/state_in_formats.hpp
        parts/state_pass.hpp
        parts/state_transfer.hpp
        parts/state_update.hpp
        parts/staying_parameters.hpp
        parts/step_verdict.hpp
        parts/take_over.hpp
        parts/tier_folder.hpp
        parts/trainable_change.hpp
        parts/trained_model.hpp
        parts/unit_gathering.hpp
        parts/unit_order.hpp
        parts/weight_gathering.hpp
        parts/whole_model.hpp
        parts/written_weights.hpp
        state.hpp
        tensors_in.hpp
        tier.hpp
        tier_bytes.hpp
        tiers/cpu.hpp
        tiers/device.hpp
        tiers/in_memory.hpp
        tiers/nvme.hpp
        tiers/split.hpp
        torch_version.hpp
        unit.hpp
        unit_link.hpp
        unit_values.hpp
        ${zero_headers})

if(STRATA_WITH_CUDA AND NOT TARGET torch_cuda)
    message(FATAL_ERROR "STRATA_WITH_CUDA needs a libtorch with CUDA; the one in ${Torch_DIR} is for the CPU. "
        "Configure anew with -DCMAKE_PREFIX_PATH=<folder>: of a libtorch for CUDA from pytorch.org, or what "
        "`python3 -c 'import torch; print(torch.utils.cmake_prefix_path)'` prints for a PyTorch with CUDA.")
endif()

if(STRATA_WITH_TORCH)
    set(testing_needs zero data models adapters)
    set(testing_headers adapter_conformance.hpp average_conformance.hpp device_conformance.hpp frozen_codec_conformance.hpp
        recipe_conformance.hpp tier_conformance.hpp training_conformance.hpp)
    set(umbrella "${PROJECT_SOURCE_DIR}/include/strata/strata.hpp")
endif()

# Without MPI: of comm/ it sees what a communicator is, and one that is alone.
strata_room(datasets
    NEEDS core config storage http s3 tables pictures
    PACKAGES TBB SQLite3 nlohmann_json
    LINKS TBB::tbb SQLite::SQLite3 nlohmann_json::nlohmann_json pcre2-8
    HEADERS
        broken_samples.hpp
        bucket_table.hpp
        byte_budget.hpp
        byte_fields.hpp
        cache_cost.hpp
        cache_identity.hpp
        caption_files.hpp
        caption_filter.hpp
        captions.hpp
        collection.hpp
        conditioning_pairs.hpp
        contents.hpp
        detail/catalog.hpp
        detail/discovery.hpp
        detail/examine.hpp
        detail/index_rows.hpp
        detail/picture_reading.hpp
        detail/sqlite_statement.hpp
        discovered.hpp
        discovery.hpp
        epoch_phases.hpp
        folder_place.hpp
        for_all.hpp
        indexed_picture.hpp
        latent_caching.hpp
        permutation.hpp
        picture_fault.hpp
        picture_notes.hpp
        ranks_on_machine.hpp
        report.hpp
        sample.hpp
        sample_choice.hpp
        sample_fields.hpp
        sample_index.hpp
        sample_plan.hpp
        sample_table.hpp
        statistics.hpp
        stores.hpp
        url_store.hpp)

strata_room(data
    NEEDS core config storage comm pictures datasets
    PACKAGES Torch TBB
    LINKS torch TBB::tbb
    HEADERS
        cache_memory.hpp
        detail/entry_slabs.hpp
        detail/loaded_recipe.hpp
        detail/picture_source_body.hpp
        detail/picture_source_encode.hpp
        detail/picture_source_fill.hpp
        detail/picture_source_prepare.hpp
        detail/picture_source_start.hpp
        detail/picture_source_steps.hpp
        detail/picture_source_stream.hpp
        detail/sample_work.hpp
        detail/source_identity.hpp
        detail/source_texts.hpp
        entry_shapes.hpp
        named_tensors.hpp
        picture_source.hpp
        recipe.hpp
        recipe_rules.hpp
        sample_stream.hpp
        source_options.hpp
        step_graph.hpp
        tensor_cache.hpp)

# Reckons in plain numbers; only what touches samples (guidance, noise_source, objective, sampler) takes libtorch.
strata_room(diffusion
    NEEDS core config
    PACKAGES Torch Eigen3 nlohmann_json
    LINKS torch Eigen3::Eigen nlohmann_json::nlohmann_json
    HEADERS
        ddpm_schedule.hpp
        flow_schedule.hpp
        guidance.hpp
        loss_weights.hpp
        noise_source.hpp
        objective.hpp
        path.hpp
        prediction.hpp
        sampler.hpp
        scheduler_config.hpp
        solver.hpp
        step_plan.hpp
        timestep_density.hpp
        with_method.hpp)

# NVML is opened by dlopen(), which is in glibc itself from 2.34 on.
strata_room(health
    NEEDS core options http
    PACKAGES Threads
    LINKS Threads::Threads
    HEADERS
        circuit_breaker.hpp
        failure_class.hpp
        fault.hpp
        gpu_reading.hpp
        health_monitor.hpp
        host_reading.hpp
        nvml.hpp
        visible_gpu.hpp)

strata_room(webhooks
    NEEDS core options config storage http health
    PACKAGES nlohmann_json CURL Threads
    LINKS nlohmann_json::nlohmann_json CURL::libcurl Threads::Threads
    HEADERS
        courier.hpp
        delivery.hpp
        event.hpp
        event_journal.hpp
        health_event.hpp
        request.hpp
        transport.hpp)

strata_room(checkpoint
    NEEDS core policy config storage comm optim zero
    PACKAGES Torch
    LINKS torch
    HEADERS
        checkpoint.hpp
        copies.hpp
        facts.hpp
        folders.hpp
        manifest.hpp
        resume.hpp
        size.hpp)

strata_room(weights
    NEEDS core storage comm zero
    PACKAGES Torch nlohmann_json
    LINKS torch nlohmann_json::nlohmann_json
    HEADERS
        file_values.hpp
        load_weights.hpp
        remove_weights.hpp
        save_weights.hpp
        weight_files.hpp
        weight_match.hpp
        weight_names.hpp)

strata_room(models
    NEEDS core policy config storage tokenizers optim zero pictures data diffusion
    PACKAGES Torch
    LINKS torch
    HEADERS
        adaptable_model.hpp
        attention.hpp
        attention_kernels.hpp
        autoencoder_kl.hpp
        autoencoder_kl_options.hpp
        autoencoder_tiny.hpp
        clip_text.hpp
        convolution.hpp
        convolution_form.hpp
        detail/attention_loops.hpp
        detail/few_rows_loops.hpp
        detail/group_norm_shape.hpp
        detail/lane_loops.hpp
        detail/pair_loops.hpp
        detail/pair_walk.hpp
        detail/patch_grid.hpp
        detail/picture_size.hpp
        detail/unet_loops.hpp
        detail/wide_product.hpp
        detail/winograd_blocks.hpp
        diffusion_unet.hpp
        drawing.hpp
        encoder_loaders.hpp
        encoders.hpp
        few_rows.hpp
        flow_sampler.hpp
        flux.hpp
        flux1_recipe.hpp
        flux_blocks.hpp
        flux_conditioning.hpp
        flux_recipe.hpp
        flux_transformer.hpp
        fused_ops.hpp
        hashed_text.hpp
        kernel_rows.hpp
        kernels.hpp
        kl_blocks.hpp
        latent_pictures.hpp
        layer_adapter.hpp
        layers.hpp
        linear_codec.hpp
        model_config.hpp
        norms.hpp
        packing.hpp
        pair_products.hpp
        projection.hpp
        resnet_block.hpp
        rotary.hpp
        sampler_options.hpp
        score_tile.hpp
        sd15_recipe.hpp
        sdxl_recipe.hpp
        small_flux.hpp
        t5_encoder.hpp
        text_encoders.hpp
        tiled_decode.hpp
        trained_autoencoder.hpp
        unet.hpp
        unet_batch.hpp
        unet_blocks.hpp
        unet_drawing.hpp
        unet_kernels.hpp
        unet_ops.hpp
        unet_options.hpp
        unet_transformer.hpp
        wide_blocks.hpp
        wide_convolution.hpp
        wide_products.hpp
        winograd_convolution.hpp
        winograd_tiles.hpp)

strata_room(adapters
    NEEDS core policy storage comm zero weights models
    PACKAGES Torch nlohmann_json
    LINKS torch nlohmann_json::nlohmann_json
    HEADERS
        adapt.hpp
        adapter_file.hpp
        adapter_match.hpp
        layer_change.hpp
        layer_names.hpp
        load_adapter_file.hpp
        lokr.hpp
        lora.hpp
        merge_adapter_file.hpp
        saved_adapter.hpp
        targets.hpp)

strata_room(families
    NEEDS core config storage tokenizers zero weights pictures data diffusion models adapters
    PACKAGES Torch
    LINKS torch
    HEADERS
        added_adapter.hpp
        any_model.hpp
        any_recipe.hpp
        denoiser_names.hpp
        family.hpp
        model_folder.hpp
        pretrained_encoders.hpp
        weights_id.hpp)

strata_room(train
    NEEDS core policy options config storage s3 comm optim zero weights pictures datasets data diffusion checkpoint models adapters families health webhooks
    PACKAGES Torch
    LINKS torch
    APART command_line.ipp phases.ipp stop_signal.ipp terminal.ipp
    HEADERS
        adapter_facts.hpp
        any_engine.hpp
        any_model.hpp
        base_weights.hpp
        batch_source.hpp
        buffer_copies.hpp
        checkpoint_adapter.hpp
        checkpoint_weights.hpp
        checkpoints.hpp
        command_line.hpp
        compute.hpp
        compute_device.hpp
        config_for.hpp
        cpu_kernels.hpp
        data_wait.hpp
        debiased_mean.hpp
        detail/rejected_trainer.hpp
        detail/trainer_body.hpp
        drawn_samples.hpp
        environment.hpp
        evaluation.hpp
        evaluation_curves.hpp
        exported_weights.hpp
        fit_result.hpp
        frozen.hpp
        gallery.hpp
        gallery_options.hpp
        gradient_norms.hpp
        leftovers.hpp
        loss_curve.hpp
        metrics.hpp
        model_record.hpp
        named_loss.hpp
        named_norm.hpp
        options.hpp
        options_from_config.hpp
        phases.hpp
        picture_grid.hpp
        progress.hpp
        ranks_together.hpp
        report.hpp
        rescue.hpp
        run_actions.hpp
        run_events.hpp
        run_folders.hpp
        run_health.hpp
        run_log.hpp
        run_plan.hpp
        run_record.hpp
        run_settings.hpp
        run_stage.hpp
        seed.hpp
        session.hpp
        stall_record.hpp
        step_end.hpp
        step_failure.hpp
        step_pass.hpp
        step_samples.hpp
        step_undo.hpp
        stop_signal.hpp
        straggler_note.hpp
        stragglers.hpp
        tensor_memory.hpp
        terminal.hpp
        trainable.hpp
        trainable_history.hpp
        trainer.hpp
        trainer_for.hpp
        trainer_run.hpp
        training_run.hpp
        turn_plan.hpp
        turn_taker.hpp
        turns.hpp
        unit_rules.hpp
        validate.hpp
        work_time.hpp
        written_adapter.hpp
        written_weights.hpp)

strata_room(testing
    NEEDS core policy storage optim offload ${testing_needs}
    HEADERS
        communicator_conformance.hpp
        detail/rule_run.hpp
        object_store_conformance.hpp
        rule_conformance.hpp
        ${testing_headers})

# The umbrella header, which includes every room, belongs to strata::strata.
strata_whole_house(${umbrella})
if(PROJECT_IS_TOP_LEVEL)
    include("${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake")
    strata_verify_headers()
endif()
