// precompiled.h and GoogleTest.
#pragma once

#include "cmake/precompiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
