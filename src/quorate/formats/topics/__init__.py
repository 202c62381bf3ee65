"""Records of the internal topics of brokers: groups, transactions, share state, tiered segments."""
