package instances

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
)

// checkClusters returns a usage error for what cannot be listed by clusters.
func (o *getOptions) checkClusters(what string) error {
	switch {
	case !o.clusters:
		return nil
	case !slices.Contains([]string{"instances", "instance"}, what):
		return command.UsageError("--clusters cannot be used with %s: only Instances are placed on clusters", what)
	case o.output == "wide":
		return command.UsageError("--clusters cannot be used with -o wide: kubectl kudo placement show NAME -o wide shows the clusters of one")
	}
	return nil
}

// printClusters prints what the clusters of each Instance add up to, and a row for each cluster.
func (t *tables) printClusters(list client.ObjectList) error {
	instances, isList := list.(*v1beta1.InstanceList)
	if !isList || len(instances.Items) == 0 {
		return t.print(list)
	}
	columns := command.MemberColumns()
	columns[len(columns)-1] = "" // few have a message
	rows := [][]string{append([]string{"NAMESPACE", "NAME"}, columns...)}
	for n := range instances.Items {
		i := &instances.Items[n]
		if !i.IsTemplate() {
			rows = append(rows, []string{i.Namespace, i.Name, "-", "", "", i.Status.AggregatedStatus.ActivePlanName,
				string(i.Status.AggregatedStatus.Status), i.Spec.OperatorVersion.Name})
			continue
		}
		rows = append(rows, append([]string{i.Namespace, i.Name}, command.PlacedRow(i, t.env.Now())...))
		for _, member := range command.MemberRows(i, t.env.Now()) {
			rows = append(rows, append([]string{"", ""}, member...))
		}
	}
	if !t.namespaces {
		for n := range rows {
			rows[n] = rows[n][1:]
		}
	}
	return t.env.PrintTable(rows)
}
