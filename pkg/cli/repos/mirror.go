package repos

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
)

func newMirror(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mirror",
		Short: "Manage from where packages of a registry are read",
		Long: `Manage mirrors of registries. A package of a registry with a mirror is read from the mirror, under the same name and with the same
digests and signatures. The registry itself is asked only with --fallback:

  kubectl kudo repo mirror add oci://registry.example.com/kudo oci://registry.internal/kudo
  kubectl kudo repo mirror list`,
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newMirrorAdd(env), newMirrorRemove(env), newMirrorList(env))
	return cmd
}

func newMirrorAdd(env *command.Env) *cobra.Command {
	fallback := false
	cmd := &cobra.Command{
		Use:   "add oci://HOST[/PATH] PLACE…",
		Short: "Read packages of a registry from other places",
		Long: `Read packages of a registry, or of a path in it, from other places, in the order in which they are named: registries,
oci://HOST[/PATH], or folders, layout:DIR. What the command named before for this registry is replaced.

  kubectl kudo repo mirror add oci://registry.example.com/kudo oci://registry.internal/kudo

Credentials of a mirror are its own: those of repo add for an address of the mirror, or of docker login.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return command.UsageError("%s takes a registry, and the places that are asked instead", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m := repository.Mirror{Prefix: args[0], Fallback: fallback}
			for _, place := range args[1:] {
				if dir, is := strings.CutPrefix(place, "layout:"); is && dir != "" {
					dir, err := filepath.Abs(dir)
					if err != nil {
						return err
					}
					place = "layout:" + filepath.ToSlash(dir)
				}
				m.To = append(m.To, place)
			}
			if err := m.Validate(); err != nil {
				return command.UsageError("%w", err)
			}
			if err := changeMirrors(env, cmd, func(list *repository.Repositories) error { return list.SetMirror(m) }); err != nil {
				return err
			}
			env.Printf("mirror of %s added", m.Prefix)
			return nil
		},
	}
	cmd.Flags().BoolVar(&fallback, "fallback", false, "ask the registry itself for what no mirror has")
	return cmd
}

func newMirrorRemove(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "remove oci://HOST[/PATH]",
		Aliases: []string{"rm"},
		Short:   "Read packages of a registry from the registry again",
		Long: `Read packages of a registry, or of a path in it, from the registry again.

  kubectl kudo repo mirror remove oci://registry.example.com/kudo`,
		Args: command.ExactArgs(1, "a registry that has a mirror"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := changeMirrors(env, cmd, func(list *repository.Repositories) error { return list.RemoveMirror(args[0]) }); err != nil {
				return err
			}
			env.Printf("mirror of %s removed", args[0])
			return nil
		},
	}
}

func newMirrorList(env *command.Env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List registries that have mirrors",
		Long: `List registries that have mirrors, and the places that are asked instead.

  kubectl kudo repo mirror list -o yaml`,
		Args: command.ExactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := command.CheckFormat(output); err != nil {
				return err
			}
			home, err := env.RepositoryHome()
			if err != nil {
				return err
			}
			list, err := home.Load()
			if err != nil {
				return err
			}
			return printMirrors(env, list.Mirrors, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return cmd
}

func printMirrors(env *command.Env, mirrors []repository.Mirror, output string) error {
	if output != "" {
		return env.PrintValue(output, append([]repository.Mirror{}, mirrors...))
	}
	if len(mirrors) == 0 {
		env.Printf("no registry has a mirror: add one by kubectl kudo repo mirror add")
		return nil
	}
	rows := [][]string{{"REGISTRY", "READ FROM"}}
	for _, m := range mirrors {
		places := m.To
		if m.Fallback {
			places = append(append([]string{}, places...), m.Prefix)
		}
		rows = append(rows, []string{m.Prefix, strings.Join(places, ", ")})
	}
	return env.PrintTable(rows)
}

// changeMirrors changes the mirrors in the file of repositories.
func changeMirrors(env *command.Env, cmd *cobra.Command, change func(*repository.Repositories) error) error {
	home, err := env.RepositoryHome()
	if err != nil {
		return err
	}
	return home.Change(cmd.Context(), change)
}
