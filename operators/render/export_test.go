package render

// What the tests of package render_test share with those of this package.
var (
	Shapes  = shapes
	Hostile = hostile
	Helpers = helpers
)
