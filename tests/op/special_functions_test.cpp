// Special functions against mpmath 1.3 at 250 digits, scaled ones of Bessel against it at 40.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "composit/shipped/classical_functions.h"
#include "composit/shipped/special_series.h"

namespace special_functions {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Within four units in the last place.
void expect_close(double x, double expected) {
  EXPECT_LE(std::abs(x - expected), 8.9e-16 * std::abs(expected)) << x << ", not " << expected;
}

TEST(SpecialFunctions, InverseOfErf) {
  const double table[][2] = {
      {1e-300, 8.86226925452758e-301}, {1e-10, 8.862269254527581e-11},
      {0.1, 0.08885599049425769},      {0.4999, 0.4768250236254278},
      {0.5, 0.4769362762044699},       {0.7, 0.7328690779592167},
      {-0.9, -1.1630871536766743},     {0.99, 1.8213863677184494},
      {0.999999, 3.458910737275499},   {0.9999999999999999, 5.8635847487551676}};
  for (const auto& [x, expected] : table) expect_close(erfinv(x), expected);
  for (double x = -0.999; x < 1; x += 0.013) EXPECT_NEAR(std::erf(erfinv(x)), x, 2.3e-16);
  EXPECT_EQ(erfinv(1), kInf);
  EXPECT_EQ(erfinv(-1), -kInf);
  EXPECT_TRUE(std::isnan(erfinv(1.01)) && std::isnan(erfinv(kNaN)));
  EXPECT_TRUE(erfinv(-0.0) == 0 && std::signbit(erfinv(-0.0)));
}

TEST(SpecialFunctions, Digamma) {
  const double table[][2] = {{1e-300, -1e300},
                             {1e-05, -100000.57719921567},
                             {0.1, -10.423754940411076},
                             {0.5, -1.9635100260214235},
                             {1.0, -0.5772156649015329},
                             {1.25, -0.22745353337626542},
                             {1.5, 0.03648997397857652},
                             {2.0, 0.42278433509846713},
                             {3.7, 1.1671535393615113},
                             {10.0, 2.251752589066721},
                             {20.0, 2.970523992242149},
                             {1000.0, 6.907255195648812},
                             {1e17, 39.14394658089878},
                             {-0.5, 0.03648997397857652},
                             {-0.1, 9.245073050052948},
                             {-1.75, -2.322691628614361},
                             {-10.3, 4.662403493582087},
                             {-100.001, 1004.6068819277821},
                             {-1000000.25, 16.957103961553827}};
  for (const auto& [x, expected] : table) expect_close(digamma(x), expected);
  EXPECT_NEAR(digamma(1.4616321), -4.3514636958769774e-08, 1e-18);  // next to its zero
  EXPECT_EQ(digamma(0.0), -kInf);
  EXPECT_EQ(digamma(-0.0), kInf);
  EXPECT_EQ(digamma(kInf), kInf);
  EXPECT_TRUE(std::isnan(digamma(-3)) && std::isnan(digamma(-kInf)) && std::isnan(digamma(kNaN)));
}

TEST(SpecialFunctions, Polygamma) {
  const double table[][3] = {{1, 1e-05, 10000000001.644909},     {1, 0.5, 4.934802200544679},
                             {1, 1, 1.6449340668482264},         {1, 3.5, 0.3303577561002349},
                             {1, 100, 0.010050166663333571},     {1, 1e10, 1.00000000005e-10},
                             {1, -0.5, 8.934802200544679},       {1, -10.3, 14.986887065722637},
                             {2, 0.1, -2001.8614573783436},      {2, 1, -2.4041138063191885},
                             {2, 25, -0.001665279318422468},     {2, -0.5, -0.82879664423432},
                             {3, 2, 0.49393940226682914},        {4, 7.5, -0.002457482989368555},
                             {10, 1, -3630593.311606629},        {10, 0.01, -3.628799999999999e+28},
                             {30, 3.3, -2.2379312199361276e+16}, {100, 50, -2.7391048021902828e-14},
                             {0, 3.7, 1.1671535393615113}};
  for (const auto& [n, x, expected] : table) expect_close(polygamma(n, x), expected);
  EXPECT_EQ(polygamma(1, -1), kInf);
  EXPECT_EQ(polygamma(2, 0), -kInf);
  EXPECT_EQ(polygamma(1, kInf), 0);
  EXPECT_TRUE(std::isnan(polygamma(-1, 2)) && std::isnan(polygamma(1.5, 2)));
  EXPECT_TRUE(std::isnan(polygamma(1, kNaN)));
}

TEST(SpecialFunctions, Zeta) {
  const double table[][3] = {
      {2, 1, 1.6449340668482264},       {2, 0.5, 4.934802200544679},
      {3, 1, 1.2020569031595942},       {1.0001, 1, 10000.577222947539},
      {1.5, 0.01, 1002.5924620202128},  {1.5, 1e6, 0.002000000500000125},
      {2, 1e10, 1.00000000005e-10},     {4.5, 12, 5.5124664534443555e-05},
      {10, 3, 1.8012627818085337e-05},  {50, 1, 1.0000000000000009},
      {50, 20, 9.741288743603644e-66},  {50, 100, 2.58230007191163e-100},
      {300.5, 0.9, 56250438648419.484}, {3, -1.5, 0.1181020258208637},
      {2, -0.5, 8.934802200544679},     {7, -9.25, -16376.701057088092},
      {1.25, 33, 1.6752660923788623},   {2, -1000.5, 9.868605400173441},
      {3, -30.25, -62.01202471454503},  {5, -123456789.75, 1020.0656159509382}};
  for (const auto& [s, q, expected] : table) expect_close(zeta(s, q), expected);
  EXPECT_EQ(zeta(1, 2), kInf);
  EXPECT_EQ(zeta(2, 0), kInf);
  EXPECT_EQ(zeta(2.5, -2), kInf);
  EXPECT_EQ(zeta(2, -kInf), kInf);
  EXPECT_NEAR(zeta(2, -1e15 - 0.5), std::numbers::pi * std::numbers::pi, 1e-14);  // and soon
  EXPECT_TRUE(std::isnan(zeta(0.5, 2)) && std::isnan(zeta(2.5, -1.5)));
  EXPECT_TRUE(std::isnan(zeta(kNaN, 2)) && std::isnan(zeta(2, kNaN)));
}

// The exponential by which they are scaled overflows above 709.
TEST(SpecialFunctions, ScaledBesselFunctions) {
  const double table[][5] = {
      // x, i0e, i1e, scaled k0, scaled k1
      {0.5, 0.6450352704491501, 0.1564208031848717, 1.5241093857739094, 2.731009708211786},
      {10.0, 0.1278333371634286, 0.12126268138445552, 0.39163193443659866, 0.41076657059578875},
      {39.99, 0.06328624188585211, 0.06248989053177217, 0.19758013335544636, 0.20003543078272137},
      {40.0, 0.06327827987523534, 0.062482229074442064, 0.19755558495729816, 0.20000996725443349},
      {41.5, 0.06211697599449451, 0.061363957330302546, 0.19397383547884842, 0.19629711819406995},
      {300.0, 0.02304255841508546, 0.02300412204026895, 0.0723300317396073, 0.07245048166725841},
      {700.0, 0.015081295651531358, 0.015070519444716848, 0.04736236945461357, 0.04739618765349454},
      {709.0, 0.01498523542988994, 0.014974663831277437, 0.04706090848127758, 0.047094085024098724},
      {710.0, 0.014974675005024156, 0.014964125740784194, 0.04702776698001149, 0.04706087348084149},
      {745.0, 0.014618568483580884, 0.014608754067042649, 0.04591017865413021,
       0.045940980528754366},
      {746.0, 0.014608763939603751, 0.01459896925715445, 0.04587940774309863, 0.04591014772511841},
      {1000.0, 0.012617240455891257, 0.012610930256928629, 0.03962832160075422,
       0.03964813081296021},
      {12345.5, 0.0035905429109423493, 0.003590397488900861, 0.011279794809944843,
       0.01128025163900844},
      {1000000.0, 0.00039894233026924577, 0.0003989421307980308, 0.0012533139806513213,
       0.0012533146073081549}};
  // The C++ standard library's series, and an exponential, are less accurate below 40.
  const auto near = [](double x, double expected) {
    EXPECT_LE(std::abs(x - expected), 2e-14 * std::abs(expected)) << x << ", not " << expected;
  };
  for (const auto& [x, first, second, third, fourth] : table) {
    for (const double sign : {1, -1}) {
      near(i0e(sign * x), first);
      near(i1e(sign * x), sign * second);
    }
    near(scaled_k0(x), third);
    near(scaled_k1(x), fourth);
    if (x >= 40) expect_close(i0e(x), first);
    if (x >= 40) expect_close(scaled_k1(x), fourth);
  }
  EXPECT_EQ(i0e(-kInf), 0);
  EXPECT_TRUE(i1e(-kInf) == 0 && std::signbit(i1e(-kInf)));
  EXPECT_TRUE(scaled_k0(kInf) == 0 && scaled_k1(kInf) == 0 && scaled_k0(0) == kInf);
  EXPECT_TRUE(std::isnan(i0e(kNaN)) && std::isnan(i1e(kNaN)));
  EXPECT_TRUE(std::isnan(scaled_k0(kNaN)) && std::isnan(scaled_k1(-1000)));
}

}  // namespace
}  // namespace special_functions
