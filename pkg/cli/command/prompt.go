package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// errEmpty is what a Prompter says of an answer without text where a text is required.
var errEmpty = errors.New("this cannot be empty")

// Prompter asks questions on a terminal, one line each.
type Prompter struct {
	in  *bufio.Scanner
	out io.Writer
}

// NewPrompter returns a Prompter that reads answers from in and writes questions to out.
func NewPrompter(in io.Reader, out io.Writer) *Prompter { return &Prompter{bufio.NewScanner(in), out} }

// ask repeats a question until the answer is valid. An empty answer stands for the standard.
func (a *Prompter) ask(question, standard string, valid func(string) error) (string, error) {
	for {
		if standard != "" {
			_, _ = fmt.Fprintf(a.out, "%s [%s]: ", question, standard)
		} else {
			_, _ = fmt.Fprintf(a.out, "%s: ", question)
		}
		if !a.in.Scan() {
			return "", errors.Join(a.in.Err(), fmt.Errorf("no answer to %q: nothing was changed", question))
		}
		answer := strings.TrimSpace(a.in.Text())
		if answer == "" {
			answer = standard
		}
		err := valid(answer)
		if err == nil {
			return answer, nil
		}
		_, _ = fmt.Fprintf(a.out, "  %v\n", err)
	}
}

// Text asks for a text that may be empty.
func (a *Prompter) Text(into *string, question string) (err error) {
	*into, err = a.ask(question, *into, func(string) error { return nil })
	return err
}

// RequiredText asks for a text that may not be empty.
func (a *Prompter) RequiredText(into *string, question string) (err error) {
	*into, err = a.ask(question, *into, func(s string) error {
		if s == "" {
			return errEmpty
		}
		return nil
	})
	return err
}

// Choose asks for one of several choices.
func (a *Prompter) Choose(into *string, question string, choices []string) (err error) {
	*into, err = a.ask(question+" ("+strings.Join(choices, ", ")+")", *into, func(s string) error {
		if !slices.Contains(choices, s) {
			return fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		return nil
	})
	return err
}

// List asks for one or more texts, separated by commas.
func (a *Prompter) List(into *[]string, question string) error {
	joined, err := a.ask(question+", separated by commas", strings.Join(*into, ", "), func(s string) error {
		if len(SplitList(s)) == 0 {
			return errEmpty
		}
		return nil
	})
	if err != nil {
		return err
	}
	*into = SplitList(joined)
	return nil
}

// answers to a question of yes or no.
var answers = map[string]bool{"y": true, "yes": true, "true": true, "n": false, "no": false, "false": false}

// Confirm asks for yes or no.
func (a *Prompter) Confirm(into *bool, question string) error {
	standard := "n"
	if *into {
		standard = "y"
	}
	text, err := a.ask(question+" (y, n)", standard, func(s string) error {
		if _, known := answers[strings.ToLower(s)]; !known {
			return errors.New("must be y or n")
		}
		return nil
	})
	*into = answers[strings.ToLower(text)]
	return err
}

// SplitList splits a list at commas, and drops empty parts.
func SplitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
