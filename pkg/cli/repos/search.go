package repos

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/text"
)

type searchOptions struct {
	env *command.Env

	repo, output string
	all          bool
}

// NewSearch returns the command search.
func NewSearch(env *command.Env) *cobra.Command {
	o := &searchOptions{env: env}
	cmd := &cobra.Command{
		Use:   "search [NAME]",
		Short: "List the packages of a repository",
		Long: `List the packages of a repository whose name contains NAME: the highest version of each, by appVersion and then by
operatorVersion. A registry has no list of packages: NAME must be the name of one there.

  kubectl kudo search sql --all-versions`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.UsageError("%s takes a part of a name, and got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.repo, "repo", "", "name of the repository (default the one in use)")
	f.BoolVarP(&o.all, "all-versions", "a", false, "list all versions")
	f.StringVarP(&o.output, "output", "o", "", "yaml or json")
	return cmd
}

func (o *searchOptions) run(ctx context.Context, part string) error {
	if err := command.CheckFormat(o.output); err != nil {
		return err
	}
	source, err := o.env.Remote()
	if err != nil {
		return err
	}
	found, err := o.matching(ctx, source, part)
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	if o.output != "" {
		return o.env.PrintValue(o.output, found)
	}
	if len(found) == 0 {
		o.env.Printf("no package found")
		return nil
	}
	rows := [][]string{{"NAME", "APP VERSION", "OPERATOR VERSION", "DESCRIPTION"}}
	for _, e := range found {
		app := e.AppVersion
		if app == "" {
			app = "-"
		}
		rows = append(rows, []string{e.Name, app, e.OperatorVersion, text.Truncate(text.OneLine(e.Description), 42)})
	}
	return o.env.PrintTable(rows)
}

// matching returns the entries of packages whose name contains a text: of each the highest version, or all. It is never nil.
func (o *searchOptions) matching(ctx context.Context, source *repository.Remote, part string) ([]repository.Entry, error) {
	r, err := source.Repository(o.repo)
	if err != nil {
		return nil, err
	}
	names, err := source.Names(ctx, r, part)
	if err != nil {
		return nil, err
	}
	found := []repository.Entry{}
	for _, name := range names {
		versions, err := source.Versions(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if len(versions) > 1 && !o.all {
			versions = versions[:1]
		}
		found = append(found, versions...)
	}
	return found, nil
}
