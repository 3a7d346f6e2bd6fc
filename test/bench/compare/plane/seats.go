package plane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Seats are those of the priority level of kudo's manager, by which the API server bounds how many requests it serves at a time.
type Seats struct {
	// Used is how many seats the requests of ServiceAccounts have, which kudo's manager and the accounts of Instances are. Those of Kubernetes' own
	// controllers have a level of their own.
	Used float64
	// Limit is how many seats the level has.
	Limit float64
}

// WatchSeats reads the seats each second, until the channel is closed. It returns those of the moment when the most were used.
func (p *Plane) WatchSeats(ctx context.Context, until <-chan struct{}) (Seats, error) {
	client, err := rest.HTTPClientFor(p.Config)
	if err != nil {
		return Seats{}, err
	}
	var most Seats
	for {
		seats, err := p.readSeats(ctx, client)
		if err != nil {
			return most, err
		}
		if seats.Used >= most.Used {
			most = seats
		}
		select {
		case <-until:
			return most, nil
		case <-time.After(time.Second):
		}
	}
}

func (p *Plane) readSeats(ctx context.Context, client *http.Client) (Seats, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Config.Host+"/metrics", nil)
	if err != nil {
		return Seats{}, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return Seats{}, fmt.Errorf("read the API server's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	return parseSeats(answer.Body)
}

// parseSeats reads the seats in the metrics of an API server.
func parseSeats(metrics io.Reader) (s Seats, err error) {
	err = readSamples(metrics, func(line string, value float64) {
		switch {
		case strings.HasPrefix(line, "apiserver_flowcontrol_current_executing_seats{") && label(line, "flow_schema") == "service-accounts":
			s.Used = value
		case strings.HasPrefix(line, "apiserver_flowcontrol_nominal_limit_seats{") && label(line, "priority_level") == "workload-low":
			s.Limit = value
		}
	})
	return s, err
}
