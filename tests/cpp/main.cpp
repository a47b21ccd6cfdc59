// The test program: every .cpp below this folder adds cases to it. Run one with `./dev test WORD`.
#define BOOST_TEST_MODULE framejit
#include <boost/test/unit_test.hpp>
