"""Context-free languages: weighted grammars, exact sampling given length, exact log-probabilities, data folders."""
