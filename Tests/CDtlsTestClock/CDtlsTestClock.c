#include "CDtlsTestClock.h"
