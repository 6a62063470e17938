"""Protocols: a frozen record of what everybody knows, and one function per party, whose arguments are all it may see.

* :mod:`~flamelib.protocols.blanket`: a *user* sees its own value, the *shuffler* all messages, the *analyzer* messages
  in an order that tells nothing.
* :mod:`~flamelib.protocols.flame`: a *user* sees its own update, the *shuffler* who reports which coordinates and
  messages that it need not be able to read, the *analyzer* a bag of messages a coordinate, the *observer* models.
* :mod:`~flamelib.protocols.cloak`: a *user* sees its own value, the *shufflers* all messages, the *analyzer* messages
  in an order that tells nothing.
* :mod:`~flamelib.protocols.participation`: a *client* sees its own gradients, the *server* the sums of who joined.
* :mod:`~flamelib.protocols.checkin`: a *client* sees its own value, the *shuffler* the messages of who joined.

``run`` plays all parties of a round.  :mod:`~flamelib.protocols.baselines` and :mod:`~flamelib.protocols.averages` are
what they are compared with.
"""
