package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// asker asks questions, a line each.
type asker struct {
	in  *bufio.Scanner
	out io.Writer
}

func newAsker(in io.Reader, out io.Writer) *asker { return &asker{bufio.NewScanner(in), out} }

// ask asks until the answer is valid. An empty answer is the standard.
func (a *asker) ask(question, standard string, valid func(string) error) (string, error) {
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

// text asks for a text that may be empty.
func (a *asker) text(into *string, question string) (err error) {
	*into, err = a.ask(question, *into, func(string) error { return nil })
	return err
}

// needed asks for a text that may not.
func (a *asker) needed(into *string, question string) (err error) {
	*into, err = a.ask(question, *into, func(s string) error {
		if s == "" {
			return errors.New("this cannot be empty")
		}
		return nil
	})
	return err
}

// one asks for one of several.
func (a *asker) one(into *string, question string, choices []string) (err error) {
	*into, err = a.ask(question+" ("+strings.Join(choices, ", ")+")", *into, func(s string) error {
		if !slices.Contains(choices, s) {
			return fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		return nil
	})
	return err
}

// list asks for several, separated by commas; at least one.
func (a *asker) list(into *[]string, question string) error {
	joined := strings.Join(*into, ", ")
	if err := a.needed(&joined, question+", separated by commas"); err != nil {
		return err
	}
	*into = commaList(joined)
	return nil
}

// answers to a question of yes or no.
var answers = map[string]bool{"y": true, "yes": true, "true": true, "n": false, "no": false, "false": false}

// yes asks for yes or no.
func (a *asker) yes(into *bool, question string) error {
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

// commaList splits a list at commas.
func commaList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
