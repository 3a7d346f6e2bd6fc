package sandbox

import "testing"

// TestMath has what differs from the library of the virtual machine.
func TestMath(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Same": {
			"random numbers do not depend on the seed",
			"(function() math.randomseed(7) local a = math.random() return a > 0 and a < 1 end)()",
			"true",
			"",
		},
		"Upper": {"from 1", "math.random(1)", "1", ""},
		"Both":  {"both bounds", "math.random(-3, -3), math.random(2^53, 2^53)", "-3|9007199254740992", ""},
		"Within": {
			"within the bounds",
			"(function() for i = 1, 100 do local r = math.random(3, 5) if r < 3 or r > 5 then return r end end return 'within' end)()",
			"within",
			"",
		},
		"Zero":  {"no number from 1 to 0", "math.random(0)", "", "script:6: bad argument to random: the interval from 1 to 0 is empty"},
		"Empty": {"no number between", "math.random(2, 1)", "", "script:6: bad argument to random: the interval from 2 to 1 is empty"},
		"TooLarge": {
			"more numbers than an integer holds",
			"math.random(-1023, 2^63 - 1024)",
			"",
			"script:6: bad argument to random: the interval from -1023 to 9223372036854774784 is too large",
		},
		"FarTooFar": {
			"by far",
			"math.random(-2^63, 2^63 - 1024)",
			"",
			"script:6: bad argument to random: the interval from -9223372036854775808 to 9223372036854774784 is too large",
		},
		"Text":      {"a text is no bound", "math.random('x')", "", "script:6: bad argument #1 to random (number expected, got string)"},
		"Rounding":  {"floor and ceil", "math.floor(-1.5), math.ceil(-1.5), math.floor(2^40 + 0.5)", "-2|-1|1099511627776", ""},
		"Remainder": {"% has the sign of the divisor, fmod that of the dividend", "-5 % 3, 5 % -3, math.fmod(-5, 3)", "1|-1|-2", ""},
		"Several":   {"the largest and the smallest", "math.max(2, 7, 5), math.min(2, -7, 5), math.abs(-2)", "7|-7|2", ""},
	})
}
