"""The configs that Kafka 4.3.1 defines: names, types, defaults, allowed values, synonyms.

`table` is made from Kafka's jars, `definition` reads it, `values` reads values.
"""
