package stages

// What a container would do is read from its command line: command and args,
// joined by spaces. Shell scripts are understood as far as operator packages
// use them to say "this works", "this fails", "this takes long"; everything
// else works at once.
//
// A statement starts at the beginning, after the -c of a shell, after the --
// of an init program, or after ; & or a new line. It does not after ||, so
// that `check || exit 1` works: check does.
const start = `(?:^|[;&\n({]|\s-[a-z]*c\s|\s--\s)\s*(?:exec\s+)?(?:[^\s;&|]*/)?`

const (
	// fails matches command lines whose last statement fails.
	fails = start + `(?:false|exit\s+[1-9][0-9]*)\s*;?\s*$`
	// exit finds the exit code in a command line that fails.
	exit = `exit\s+[0-9]+\s*;?\s*$`
	// forever matches command lines that never end by themselves.
	forever = start + `(?:sleep\s+(?:infinity|inf)\b|tail\s+(?:\S+\s+)*-[fF]\b|while\s+(?:true|:|\[\s+1\s+\])\s*[;\n])`
	// sleeps finds the statements that take time, with number and unit.
	sleeps = `(?:` + start + `|\b(?:do|then|else)\s+)sleep\s+([0-9]+(?:\.[0-9]+)?)([smhd]?)\b`
	// noImage matches images that say themselves that they do not exist.
	noImage = `nonexist|does-not-exist|invalid`
)
