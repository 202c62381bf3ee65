"""SASL: the exchange of a connection (KIP-43, KIP-152, KIP-368) and its mechanisms. Pure."""
