package ui

import "time"

// connection is the note above each page on the state of the connection to the cluster.
type connection struct {
	// Problem is empty if all is well.
	Problem string
	// Detail is the message of the API server.
	Detail string
	// Command is a command line that helps with the problem; empty if there is none.
	Command string
	Since   time.Time
	// Stale is set if what is shown may be old.
	Stale bool
}

// connection returns what is to be said, the worst first.
func (s *Server) connection() connection {
	status := s.instances.Status()
	c := connection{Detail: status.Message, Since: status.Since, Stale: s.instances.informer.HasSynced()}
	switch status.State {
	case unreachable:
		c.Problem = "The cluster does not answer."
	case notServed:
		c.Problem, c.Command = "kudo is not installed on this cluster.", "kubectl kudo init"
	case unauthorized:
		c.Problem = "Your login has ended. Log in to the cluster again; if this stays, start kubectl kudo ui again."
	case forbidden:
		c.Problem = "You have no right to list and watch instances.kudo.dev in namespace " + s.Namespace + "."
		if s.Namespace == "" {
			c.Problem = "You have no right to list and watch instances.kudo.dev in all namespaces. Name one of yours:"
			c.Command = "kubectl kudo ui -n NAMESPACE"
		}
	default:
		return connection{}
	}
	return c
}
