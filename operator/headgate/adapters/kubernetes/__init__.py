"""The ports of the loop on a cluster: pods, annotations, the status subresource, Events.

The loop is synchronous and does no I/O, so its ports here do none either: they answer from a cache that
watches feed, and collect what is to be written. The controller runs the loop for one application at a time and has
the writes carried out, in order, each under a precondition that a writer with old knowledge does not meet.
"""
