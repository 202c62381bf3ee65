"""The broker's side of KIP-631, without a broker: to drive controllers in tests and simulations.

See `quorate.broker.lifecycle`.
"""
