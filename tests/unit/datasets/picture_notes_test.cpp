#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/picture_notes.hpp>

namespace {

using strata::datasets::PictureNotes;
using Lines = std::vector<std::string>;

TEST(PictureNotes, CountPicturesOnceAndNameTheFirstOfAllRanks) {
    PictureNotes mine;
    PictureNotes theirs;
    mine.add(1, "c.png", "its profile is damaged");
    mine.add(1, "b.png", "its profile is of inks");
    mine.add(1, "c.png", "its profile is damaged");  // decoded again
    mine.add(1, "d.png", "");
    theirs.add(1, "a.png", "its profile is empty");
    theirs.add(0, "x.png", "its profile is empty");
    const Lines packed{mine.pack(), theirs.pack()};
    EXPECT_EQ(PictureNotes::lines(packed, {"faces", "stamps"}),
              (Lines{"data set 'faces': x.png: its profile is empty",
                     "data set 'stamps': a.png: its profile is empty; and so with 2 more"}));
}

TEST(PictureNotes, WhatWasToldIsNotToldAgain) {
    PictureNotes notes;
    notes.add(0, "a.png", "its profile is empty");
    EXPECT_EQ(PictureNotes::lines({notes.pack()}, {"faces"}).size(), 1U);
    notes.add(0, "a.png", "its profile is empty");
    EXPECT_EQ(PictureNotes::lines({notes.pack()}, {"faces"}), Lines{});
    notes.add(0, "b.png", "its profile is empty");
    EXPECT_EQ(PictureNotes::lines({notes.pack()}, {"faces"}), Lines{"data set 'faces': b.png: its profile is empty"});
}

TEST(PictureNotes, ComeFromAnyThread) {
    PictureNotes notes;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&notes] {
            for (int i = 0; i < 200; ++i) notes.add(0, std::to_string(1000 + i), "a note");
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(PictureNotes::lines({notes.pack()}, {"faces"}),
              Lines{"data set 'faces': 1000: a note; and so with 199 more"});
}

}  // namespace
