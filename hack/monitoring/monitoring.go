// Package monitoring has no code: its tests hold the alerts, the dashboard and the runbooks of kudo against the metrics of the manager.
package monitoring
