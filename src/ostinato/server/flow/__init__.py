"""API priority and fairness: which request is executed next, and the share of the server that each flow gets.

Two limits, one after the other:

- Seats (`queue_set`, `levels`): the number of executing requests of a priority level, as in kube-apiserver. A request
  without a free seat waits in a queue of its flow, or is rejected with 429.
- Turns (`turns`, `heavy`): which flow runs on the event loop next. A process has one event loop, whose time a count of
  requests does not divide. While several flows are active, every step of a request is timed and charged to its flow;
  the flow that has used the least time runs first.
"""
