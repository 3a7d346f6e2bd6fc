package instances

import (
	"context"
	"fmt"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/share"
)

// getShared lists the objects that OperatorVersions and Instances hold in the cluster.
func getShared(ctx context.Context, env *command.Env, output string) error {
	if output == "name" {
		return command.UsageError("get shared prints a table, yaml or json")
	}
	c, config, _, err := env.Connect()
	if err != nil {
		return err
	}
	list := &v1beta1.InstallationList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	engine, err := act.NewSharing(config, c)
	if err != nil {
		return err
	}
	found := share.Inventories(list.Items)
	for _, o := range found {
		if err := engine.ReadLive(ctx, o); err != nil {
			return err
		}
	}
	if output == "yaml" || output == "json" {
		return env.PrintValue(output, found)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(env.Err, "No shared objects found.")
		return err
	}
	rows := [][]string{{"OBJECT", "STATE", "CREATED-BY-KUDO", "HELD-BY"}}
	if output == "wide" {
		rows[0] = append(rows[0], "OWNERS", "MESSAGE")
	}
	for _, o := range found {
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		row := []string{o.Kind + " " + name, o.State, fmt.Sprint(o.Managed), strings.Join(o.HeldBy, ", ")}
		if output == "wide" {
			row = append(row, strings.Join(o.Owners, ", "), o.Message)
		}
		rows = append(rows, row)
	}
	return env.PrintTable(rows)
}
