package ui

import "time"

// connection is what is said above each page of the connection to the cluster.
type connection struct {
	// Problem is empty if all is well.
	Problem string
	// Detail is the message of the API server.
	Detail string
	// Command helps.
	Command string
	Since   time.Time
	// Stale is set if what is shown may be old.
	Stale bool
}

// connection returns what is to be said (U10), the worst first.
func (s *Server) connection() connection {
	status := s.instances.Status()
	switch status.State {
	case unreachable:
		c := connection{Problem: "The cluster does not answer.", Detail: status.Message, Since: status.Since}
		if c.Stale = s.instances.informer.HasSynced(); c.Stale {
			c.Problem = "The cluster does not answer: this page shows what was so before."
		}
		return c
	case notServed:
		return connection{Problem: "kudo is not installed on this cluster.", Command: "kubectl kudo init", Since: status.Since}
	case forbidden:
		c := connection{Problem: "You have no right to list and watch instances.kudo.dev in namespace " + s.Namespace + ".",
			Detail: status.Message, Since: status.Since}
		if s.Namespace == "" {
			c.Problem = "You have no right to list and watch instances.kudo.dev in all namespaces. Name one of yours:"
			c.Command = "kubectl kudo ui -n NAMESPACE"
		}
		return c
	}
	return connection{}
}
