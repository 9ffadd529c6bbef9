#include <gtest/gtest.h>

#include "matrix.h"

namespace {

TEST(MatrixTest, AddsCellByCell) {
  Matrix left = {{1, 2}, {3, 4}};
  Matrix sum = left + left;
  EXPECT_EQ(sum.at(0, 0), 2);
  EXPECT_EQ(sum.at(1, 1), 8);
}

TEST(MatrixTest, RefusesOtherSizes) {
  Matrix left(2, 2);
  EXPECT_THROW(left + Matrix(3, 2), SizeError);
  EXPECT_TRUE(left.empty());
}

TEST(MatrixTest, KnowsItsRank) {
  struct Row {
    const char* text;
    int rank;
  };
  const Row rows[] = {
      {"1 0; 0 1", 2},
      {"1 1; 1 1", 1},
      {"0 0; 0 0", 0},
  };
  for (const Row& row : rows) {
    ASSERT_EQ(Matrix::Parse(row.text).rank(), row.rank);
  }
}

TEST(MatrixTest, Prints) {
  EXPECT_EQ(ToString(Matrix(1, 2)), "0 0");
  EXPECT_STREQ(Matrix::kName, "matrix");
}

}  // namespace
