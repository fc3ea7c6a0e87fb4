"""API priority and fairness: who is served next, and how much of the server a tenant gets.

Two limits, one after the other:

- Seats (`seats`, `levels`): how many requests of a priority level are under way, as in kube-apiserver. What finds no
  seat waits in a queue of its flow, or is refused with 429.
- Turns (`turns`, `heavy`): who runs on the event loop next. One Python process has one processor, which a count of
  requests does not divide. Every step of a request is timed and charged to its flow, and when several flows want to
  run, the one that has used least goes first.
"""
