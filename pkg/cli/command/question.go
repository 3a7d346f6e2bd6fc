package command

import (
	"errors"
	"os"

	"golang.org/x/term"
)

// Question is asked before a command changes what is hard to change back.
type Question struct {
	// Text of the question.
	Text string
	// Yes is set if the user has agreed by a flag: nothing is asked.
	Yes bool
	// NoTerminal is the error where nothing can be asked, and Declined the one after another answer than yes.
	NoTerminal, Declined string
}

// CanAsk returns an error where a question cannot be answered, before anything is changed.
func (env *Env) CanAsk(q Question) error {
	if file, ok := env.In.(*os.File); !q.Yes && (!ok || !term.IsTerminal(int(file.Fd()))) {
		return UsageError("%s", q.NoTerminal)
	}
	return nil
}

// Ask asks whether to continue, on a terminal.
func (env *Env) Ask(q Question) error {
	if err := env.CanAsk(q); err != nil || q.Yes {
		return err
	}
	agreed := false
	if err := NewPrompter(env.In, env.Err).Confirm(&agreed, q.Text); err != nil {
		return err
	}
	if !agreed {
		return errors.New(q.Declined)
	}
	return nil
}
