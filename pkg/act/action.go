// Package act has what a user does to an Instance as values: the command line and the page make the same ones. Each shows what it would do,
// and which command line does it.
package act

import (
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Action is what a user does to an Instance with one command.
type Action interface {
	// Command returns the command line that does it, for a shell.
	Command() string
}

// commandOf returns a command line of kudo about an Instance. The arguments behind it are quoted.
func commandOf(command string, instance *v1beta1.Instance, args ...string) string {
	out := []string{"kubectl kudo", command, "--instance", text.ShellQuote(instance.Name), "-n", text.ShellQuote(instance.Namespace)}
	for _, arg := range args {
		out = append(out, text.ShellQuote(arg))
	}
	return strings.Join(out, " ")
}
