package instances

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

// digestPrefix is what digests of previews begin with. A value of --expect without it names a file.
const digestPrefix = "sha256:"

// expectation is the value of --expect. It names a preview that was reviewed, by its digest or by the file that it was written to.
type expectation struct {
	value string
	// digest is the one that is expected, and reviewed the preview of the file; nil if only the digest is given.
	digest   string
	reviewed *preview.Preview
}

func (e *expectation) add(flags *pflag.FlagSet) {
	flags.Var(e, "expect", "digest that --dry-run has printed, or the file that its -o json has written: go on only if the same would happen")
}

// Set implements pflag.Value. An empty value is refused: no preview prints it, and with it the command would continue without a check.
func (e *expectation) Set(value string) error {
	if value == "" {
		return errors.New("give the digest that --dry-run has printed, or a file with the preview")
	}
	e.value = value
	return nil
}

// String implements pflag.Value.
func (e *expectation) String() string { return e.value }

// Type implements pflag.Value.
func (*expectation) Type() string { return "string" }

func (e *expectation) isSet() bool { return e.value != "" }

// read finds out which digest is expected.
func (e *expectation) read() error {
	if !e.isSet() || strings.HasPrefix(e.value, digestPrefix) {
		e.digest = e.value
		return nil
	}
	content, err := readFile(e.value)
	if err != nil {
		return command.UsageError("--expect: %w", err)
	}
	reviewed := &preview.Preview{}
	if err := yaml.Unmarshal(content, reviewed); err != nil {
		return command.UsageError("--expect %s: %w", e.value, err)
	}
	if reviewed.APIVersion != preview.Version || !strings.HasPrefix(reviewed.Digest, digestPrefix) {
		return command.UsageError("--expect %s: the file holds no preview of %s: write it by --dry-run -o json", e.value, preview.Version)
	}
	e.digest, e.reviewed = reviewed.Digest, reviewed
	return nil
}

// check returns an error if a preview is not the expected one, and prints how it differs, or the whole of it if only a digest is given.
func (e *expectation) check(env *command.Env, p *preview.Preview) error {
	if p.Digest == e.digest {
		return nil
	}
	show := p.WriteText
	if e.reviewed != nil {
		show = func(w io.Writer) error { return preview.WriteDifference(w, e.reviewed, p) }
	}
	var b strings.Builder
	differs := fmt.Errorf("the %s of %s would not do what --expect %s stands for: nothing was changed; look at the above, and give the "+
		"digest %s if that is right", p.Verb, p.Subject, e.value, p.Digest)
	return errors.Join(show(&b), env.Print(b.String()), command.WithCode(command.ExitFailed, differs))
}

// readFile returns the content of a regular file of bounded size.
func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: must be a regular file of at most %d bytes", file, maxFile)
	}
	return os.ReadFile(file)
}
