// One test program; every file beside this one adds suites that mirror the folders of src/ and plugin/.
#define BOOST_TEST_MODULE framejit
#include <boost/test/unit_test.hpp>
