#pragma once
// strata/strata.hpp - everything a trainer with a model of its own needs. The models that strata brings are in
// strata/models/.

#include <strata/core/error.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/options/deepspeed_schedules.hpp>
#include <strata/options/schedule.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/s3/s3.hpp>
#include <strata/storage/local.hpp>
#include <strata/train/batch_source.hpp>
#include <strata/train/frozen.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainer.hpp>
#include <strata/train/trainer_for.hpp>
#include <strata/train/turns.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/zero/in_units.hpp>
#include <strata/zero/unit.hpp>
