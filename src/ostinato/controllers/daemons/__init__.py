"""Daemons and timers: functions that run beside an object as long as it exists, on the same loop as reconciles.

Both are controllers. The reconcile of a daemon starts and stops tasks; that of a timer calls its function when it is
due. Errors, retries, Events, leader election and shutdown are therefore those of every controller.
"""
