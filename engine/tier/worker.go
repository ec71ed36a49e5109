package tier

import "sync"

// worker runs what it is given, one after the other, on a goroutine of its own.
type worker struct {
	mu      sync.Mutex
	changed sync.Cond
	jobs    []func()
	closing bool
	done    chan struct{}
}

func newWorker() *worker {
	w := &worker{done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// do queues a job and says whether it will run.
func (w *worker) do(job func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return false
	}
	w.jobs = append(w.jobs, job)
	w.changed.Signal()
	return true
}

// stop lets the queued jobs finish; done is closed after the last.
func (w *worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	w.changed.Signal()
}

func (w *worker) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.jobs) == 0 && !w.closing {
			w.changed.Wait()
		}
		jobs := w.jobs
		w.jobs = nil
		w.mu.Unlock()
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			job()
		}
	}
}
