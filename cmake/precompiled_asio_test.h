// precompiled_asio.h and GoogleTest.
#pragma once

#include "cmake/precompiled_asio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
