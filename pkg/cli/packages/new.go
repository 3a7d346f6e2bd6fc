package packages

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/cli/command"
)

// scaffold is the package that `package new` writes, with NAME in place of its name.
//
//go:embed all:scaffold
var scaffold embed.FS

func newNew(env *command.Env) *cobra.Command {
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the beginnings of a package",
		Long: `Write the beginnings of a package, which can be verified and installed as it is, into the folder NAME/operator:
operator.yaml, params.yaml and templates.`,
		Args: command.ExactArgs(1, "the name of the operator"),
		RunE: func(_ *cobra.Command, args []string) error { return writePackage(env, args[0], overwrite) },
	}
	cmd.Flags().BoolVarP(&overwrite, "overwrite", "w", false, "replace files that are there already")
	return cmd
}

func writePackage(env *command.Env, name string, overwrite bool) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return command.UsageError("%q cannot name an operator: use lower case letters, digits and -", name)
	}
	root := filepath.Join(name, "operator")
	files := map[string][]byte{}
	err := fs.WalkDir(scaffold, "scaffold", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scaffold.ReadFile(path)
		target := filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(path, "scaffold/")))
		files[target] = bytes.ReplaceAll(text, []byte("NAME"), []byte(name))
		if _, missing := os.Lstat(target); !overwrite && !errors.Is(missing, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already: use --overwrite, or another name", target)
		}
		return err
	})
	if err != nil {
		return err
	}
	for target, text := range files {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(target, text, 0o644); err != nil {
			return err
		}
	}
	env.Printf("package %s created in %s", name, root)
	return nil
}
