package fixture

import (
	"context"
	"os"
	"time"
)

// Wide is an interface that is too large: interfacebloat
type Wide interface {
	A()
	B()
	C()
	D()
	E()
}

// LongLine is a constant whose line is longer than lll allows, since the end of such a line is not seen by somebody who reads two files side by side.
const LongLine = 0

type object struct{}

func (object) Patch() {}

func (object) Update() {}

type client struct{}

func (client) Status() object { return object{} }

func init() { // gochecknoinits
	client{}.Status().Patch()  // forbidigo
	client{}.Status().Update() // forbidigo
}

// forbidden uses what only some packages may: forbidigo.
func forbidden() (time.Time, context.Context, context.Context, error) {
	return time.Now(), context.Background(), context.TODO(), os.Rename("a", "b")
}

// age takes no clock: forbidigo.
func age(since time.Time) time.Duration { return time.Since(since) }

// same compares a value with itself: staticcheck.
func same(a int) bool { return a == a }

type failure struct{}

func (*failure) Error() string { return "" }

// compared matches an error by its type: errorlint.
func compared(err error) bool {
	_, ok := err.(*failure)
	return ok
}

// Arguments has too many of them: revive.
func Arguments(a, b, c, d, e, f, g int) int { return a + b + c + d + e + f + g }

func Undocumented() {} // revive

// misspelt has a British colour: misspell.
func misspelt() {}

//nolint:misspell
func silenced() {} // nolintlint

// complex has too many branches: gocognit and nestif.
func complex(a, b, c, d bool) int {
	n := 0
	if a {
		if b {
			for range 3 {
				if c {
					if d {
						n++
					} else if b {
						n--
					}
				} else if d {
					n += 2
				}
			}
		}
	}
	if a && b || c && d {
		for range 3 {
			if n > 3 {
				n--
			}
		}
	}
	return n
}

// long has too many statements: funlen.
func long() int {
	n := 0
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	n++
	return n
}

// tall has too many lines: funlen.
func tall() []int {
	return []int{
		0,
		1,
		2,
		3,
		4,
		5,
		6,
		7,
		8,
		9,
		10,
		11,
		12,
		13,
		14,
		15,
		16,
		17,
		18,
		19,
		20,
		21,
		22,
		23,
		24,
		25,
		26,
		27,
		28,
		29,
		30,
		31,
		32,
		33,
		34,
		35,
		36,
		37,
		38,
		39,
		40,
		41,
		42,
		43,
		44,
		45,
		46,
		47,
		48,
		49,
		50,
		51,
		52,
		53,
		54,
		55,
		56,
		57,
		58,
		59,
	}
}
