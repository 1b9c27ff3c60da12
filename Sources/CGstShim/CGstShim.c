#include "CGstShim.h"
