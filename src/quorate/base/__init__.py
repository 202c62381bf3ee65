"""Words that every floor uses: ids, errors, checks."""
